"""A real browser for tests of pages: Debian's Chromium, headless, with a fresh profile."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

SCREENSHOTS = Path(__file__).parents[1] / ".screenshots"
#: What is not tested without a browser.
UNTESTED = "so nothing checks that the page draws, hovers, switches, drags and saves"
#: How long a page may load, in seconds, where other work makes the machine slow.
_PATIENCE = 20.0
_LOADING = "return Boolean(document.getElementById('loading')?.checkVisibility())"


def needs_browser() -> pytest.MarkDecorator:
    """Skip tests where Chromium, its driver or selenium is missing, and say what that misses."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        cure = "apt-get install chromium chromium-driver"
        return pytest.mark.skip(reason=f"Chromium is not installed ({cure}), {UNTESTED}")
    missing = find_spec("selenium") is None
    return pytest.mark.skipif(missing, reason=f"selenium is not installed, {UNTESTED}")


class Browser:
    """A browser that shows one page, with what tests ask of it."""

    def __init__(self, driver: Any, downloads: Path) -> None:
        self.driver = driver
        self.downloads = downloads

    def open(
        self,
        page: Path,
        *,
        width: int = 1280,
        height: int = 1000,
        dark: bool = False,
        scripts: bool = True,
    ) -> Any:
        """Load a page in a window of this size, and wait until its `scripts` have run."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        mode = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.command("Emulation.setEmulatedMedia", features=[mode, still])
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(page.as_uri())
        until = time.monotonic() + _PATIENCE
        while scripts and self.js(_LOADING):
            if time.monotonic() > until:
                raise TimeoutError(f"Scripts of {page.name} have not run in {_PATIENCE:g} s.")
            time.sleep(0.05)
        return self

    def keep(self, name: str) -> None:
        """Keep a picture of the window in .screenshots, to look at after the tests."""
        SCREENSHOTS.mkdir(exist_ok=True)
        self.driver.save_screenshot(str(SCREENSHOTS / f"{name}.png"))

    def command(self, name: str, **arguments: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, arguments)

    def js(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page, and return its value."""
        return self.driver.execute_script(script, *arguments)

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30)))"
        )

    def complaints(self) -> list[str]:
        """Return what the console has said since the page was loaded."""
        return [line["message"] for line in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the page was loaded."""
        events = [
            json.loads(line["message"])["message"] for line in self.driver.get_log("performance")
        ]
        sent = (one["params"] for one in events if one["method"] == "Network.requestWillBeSent")
        return [one["request"]["url"] for one in sent]


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser whose profile and downloads are in a folder."""
    from selenium import webdriver  # noqa: PLC0415 - it may not be installed
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    profile = f"--user-data-dir={folder / 'profile'}"
    quiet = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
    for argument in (*quiet, "--disable-dev-shm-usage", "--hide-scrollbars", profile):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        downloads = folder / "downloads"
        downloads.mkdir()
        found = Browser(driver, downloads)
        place = {"behavior": "allow", "downloadPath": str(downloads)}
        found.command("Browser.setDownloadBehavior", **place)
        yield found
    finally:
        driver.quit()

// A page that a server keeps up to date: it asks for news, and fills in cells as they finish.

const OFTEN = 1500; // milliseconds between two questions
const SELDOM = 15000; // the same while nobody looks
let heard = null; // when the server last answered
let asking = 0;

function startLive() {
  document.getElementById("now").hidden = false;
  hideEmptyMarks();
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) ask();
  });
  ask();
}

async function ask() {
  clearTimeout(asking);
  asking = -1;
  const { version, after } = data.live;
  try {
    const news = await received(`news?version=${encodeURIComponent(version)}&after=${after}`);
    heard = new Date();
    if (news.version !== version && !panels.some((panel) => panel.dragging)) await renew();
    else if (news.version === version) take(news);
    drawStatus(news.status);
    say("");
  } catch (error) {
    const since = heard ? ` since ${heard.toLocaleTimeString()}` : "";
    say(`No answer from the server${since}. This page shows what was known then, and goes on by itself when \`${data.command}\` runs again.`
      .replaceAll("`", "") + (error.status === 403 ? " It has another token now: open the address that it has printed." : ""));
  }
  loaded();
  if (asking < 0) asking = setTimeout(ask, document.hidden ? SELDOM : OFTEN);
}

async function received(address) {
  const answer = await fetch(address, { cache: "no-store", credentials: "same-origin" });
  if (!answer.ok) throw Object.assign(new Error(answer.statusText), { status: answer.status });
  return answer.json();
}

function say(text) {
  const place = document.getElementById("connection");
  place.classList.toggle("stopped", Boolean(text));
  if (place.textContent !== text) place.textContent = text;
}

// Fill in cells that have finished since the last answer, and mark those in training.
function take({ cells: found, running, after }) {
  const changed = markRunning(running);
  for (const [at, cell, seeds, diverged, errors] of found) {
    const scape = data.landscapes[at];
    scape.cells.seeds[cell] = seeds;
    scape.cells.diverged[cell] = diverged;
    for (const [split, [value, text, spread]] of Object.entries(errors)) {
      if (!(split in scape.splits)) continue;
      scape.splits[split].values[cell] = value;
      scape.splits[split].texts[cell] = text;
      scape.splits[split].spreads[cell] = spread;
    }
    changed.add(scape);
  }
  data.live.after = after;
  for (const panel of panels) if (changed.has(panel.scape)) drawPanel(panel, ["cells", "marks"]);
  if (changed.size) refresh();
}

// Return the landscapes of which other cells are in training than before.
function markRunning(running) {
  const now = data.landscapes.map((scape) => scape.cells.seeds.map(() => 0));
  for (const [at, cell, seeds] of running) now[at][cell] = seeds;
  const changed = data.landscapes.filter((scape, at) => String(scape.cells.running ?? now[at].map(() => 0)) !== String(now[at]));
  data.landscapes.forEach((scape, at) => { scape.cells.running = now[at]; });
  return new Set(changed);
}

// What a landscape's empty cells and its marks mean, in words; nothing once all cells have a result.
function progressWords({ cells: { seeds, running } }) {
  if (!data.live) return "";
  const [busy, waiting] = [seeds.filter((_, at) => running?.[at]).length, seeds.filter((done, at) => !done && !running?.[at]).length];
  const told = [busy ? `${busy} in training now` : "", waiting ? `${waiting} waiting` : ""].filter(Boolean);
  return told.length ? ` Of its ${seeds.length} cells, ${told.join(" and ")}.` : "";
}

// Take a new view: other landscapes, recommendations or curves. What a person has chosen stays.
async function renew() {
  const found = await received("data");
  const focused = focusPlace();
  const pinned = state.pinned.map(settingOf);
  const running = data.landscapes.flatMap((scape) => (scape.cells.running ?? [])
    .flatMap((seeds, at) => (seeds ? [[settingOf([scape, at]), seeds]] : [])));
  const moved = [...state.rates].map(([scape, lr]) => [scape.title, lr]);
  const first = !data.landscapes.some((scape) => scape.curves);
  Object.assign(data, found);
  const named = (title) => data.landscapes.find((scape) => scape.title === title);
  const answers = new DOMParser().parseFromString(found.answers, "text/html");
  const reading = document.querySelector("#judged details")?.open ?? false;
  const judged = new DOMParser().parseFromString(found.judged, "text/html");
  document.getElementById("judged").replaceChildren(...judged.body.childNodes);
  const words = document.querySelector("#judged details");
  if (words) words.open ||= reading;
  const open = [...document.querySelectorAll("#answers details[open]")].map((one) => one.closest("article").querySelector("h2").textContent);
  document.getElementById("first").replaceChildren(...answers.body.childNodes);
  for (const one of document.querySelectorAll("#answers article")) {
    const details = one.querySelector("details");
    if (details && open.includes(one.querySelector("h2").textContent)) details.open = true;
  }
  state.rates = new Map(moved.flatMap(([title, lr]) => (named(title) ? [[named(title), lr]] : [])));
  state.pinned = pinned.flatMap(cellsAt).filter(([scape]) => scape.curves);
  markRunning(running.flatMap(([place, seeds]) => cellsAt(place).map(([scape, at]) => [data.landscapes.indexOf(scape), at, seeds])));
  build(first);
  hideEmptyMarks();
  focusPlace(focused);
}

// A cell by what stays the same from view to view.
function settingOf([scape, at]) {
  return [scape.title, scape.lrs[scape.cells.lr[at]], scape.cells.decay[at]];
}

function cellsAt([title, lr, decay]) {
  return data.landscapes.filter((scape) => scape.title === title).flatMap((scape) => scape.cells.decay
    .flatMap((one, at) => (one === decay && scape.lrs[scape.cells.lr[at]] === lr ? [[scape, at]] : [])));
}

// Before the first recommendation there is nothing to mark.
function hideEmptyMarks() {
  const marks = document.getElementById("choose-marks");
  marks.hidden = !marks.querySelector("input");
}

// Where the keyboard is: in a picture or at a control. With an argument, bring it back there.
function focusPlace(place) {
  const all = [...document.querySelectorAll("#panels [tabindex], #panels input, #controls input")];
  if (place === undefined) return all.indexOf(document.activeElement);
  if (place >= 0) all[place]?.focus({ preventScroll: true });
  return place;
}

function drawStatus({ stages, trouble, note }) {
  const told = stages.flatMap(stageLines);
  if (note) told.push(element("p", note, { class: "note" }));
  if (trouble) told.push(element("p", `The page could not be brought up to date: ${trouble}`, { class: "stopped" }));
  document.getElementById("stages").replaceChildren(...told);
  document.getElementById("about-training").hidden = !stages.some(({ name, planned, done }) => !name && planned > done);
}

function stageLines(stage) {
  const { planned, done, trained, diverged, running, failed, workers, left, speed } = stage;
  const of = planned === null ? `${done} cells done` : `${done} of ${planned} cells done`;
  const parts = [
    of, diverged ? `${diverged} diverged` : "", running ? `${running} running` : "", failed ? `${failed} failed` : "",
    workers ? `${workers} worker${workers === 1 ? "" : "s"}` : "", speed, left ? `time left ${left}` : "",
  ];
  const waiting = planned === null ? 0 : planned - done - failed;
  if (!workers && waiting) parts.push("nothing is running");
  const early = stage.early ? [element("p", stage.early, { class: "early" })] : [];
  const name = stage.name ? "Fresh seeds that judge: " : "";
  const lines = [element("p", `${name}${parts.filter(Boolean).join(" · ")}`, { class: "counts" })];
  if (planned) {
    const bar = element("progress", "", { max: String(planned), "aria-label": "Trained so far" });
    bar.value = trained;
    lines.push(bar);
  }
  lines.push(...early);
  if (!stage.name) lines.push(...bestLines(planned !== null && !waiting));
  for (const { reason, cells: count } of stage.failures) {
    lines.push(element("p", `Failed, ${count} cell${count === 1 ? "" : "s"}: ${reason}`, { class: "stopped" }));
  }
  if (stage.failures.length) {
    const retry = element("p", "To train them again: ");
    retry.append(element("code", stage.retry));
    lines.push(retry);
  }
  for (const text of stage.leftOut) lines.push(element("p", text, { class: "hint" }));
  return lines;
}

// The lowest error of each landscape so far, as its cells have it. When all is done, what to use is in the landscape's card.
function bestLines(over) {
  return data.landscapes.filter((scape) => !(over && scape.advice)).flatMap((scape) => {
    const { values, texts } = scape.splits[splitOf(scape)];
    const at = values.reduce((best, value, cell) => (value !== null && scape.cells.diverged[cell] < scape.cells.seeds[cell]
      && (best < 0 || value < values[best]) ? cell : best), -1);
    return at < 0 ? [] : [element("p", `Best so far, ${scape.title}: ${data.splits[splitOf(scape)]} ${texts[at]} at ${setting(scape, at)}`, { class: "best" })];
  });
}

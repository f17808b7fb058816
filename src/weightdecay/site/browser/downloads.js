// Files of a picture: itself as PNG and SVG, its data as CSV, and the command that makes the page.

function save(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = element("a", "", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function csv(rows) {
  const field = (value) => {
    // A spreadsheet would run a name that begins like a formula.
    const formula = typeof value === "string" && /^[=+\-@\t\r]/.test(value);
    const text = value === null || value === undefined ? "" : `${formula ? "'" : ""}${value}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${rows.map((row) => row.map(field).join(",")).join("\n")}\n`;
}

// Draw a picture again, on white and with a title, for a file.
function drawn(title, option, renderer) {
  const place = element("div", "", { class: "spoken" });
  document.body.append(place);
  const colours = { ...data.colours, lost: "#e4e0dc", dark: false };
  const { height = 640, about = "", ...whole } = option({ title: true, colours });
  const chart = echarts.init(place, null, { renderer, width: 900, height, devicePixelRatio: 2 });
  chart.setOption({
    ...whole, animation: false, backgroundColor: colours.paper,
    title: whole.legend || whole.grid.length ? undefined : {
      text: title, subtext: about, left: 12, top: 10, textStyle: { color: colours.ink, fontSize: 16, fontFamily: FONT },
      subtextStyle: { color: colours.muted, fontSize: 12, lineHeight: 16, width: 870, overflow: "break", fontFamily: FONT },
    },
  });
  const content = renderer === "svg" ? chart.renderToSVGString() : chart.getDataURL({ type: "png", pixelRatio: 2 });
  chart.dispose();
  place.remove();
  return content;
}

function bytes(address) {
  return Uint8Array.from(atob(address.slice(address.indexOf(",") + 1)), (one) => one.charCodeAt(0));
}

// The buttons of a picture. `picture` returns its title and the function that makes its options.
function filesOf(picture, table, name) {
  return filesRow(name, { png: () => bytes(drawn(...picture(), "canvas")), svg: () => drawn(...picture(), "svg"), table });
}

// The buttons of a picture that is in the page as it is. Its data are those of all landscapes.
function stillFiles(figure, at) {
  const svg = () => new XMLSerializer().serializeToString(figure.querySelector("svg"));
  const table = data.landscapes.some((scape) => scape.curves) ? everyCurve : () => data.landscapes.flatMap((scape, place) => cellsTable(scape).slice(place ? 1 : 0));
  figure.append(filesRow(`figure-${at + 1}`, { png: () => painted(svg()), svg, table: data.landscapes.length ? table : null }));
}

// Paint an SVG picture on white.
async function painted(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = element("canvas", "", { width: 2 * image.width, height: 2 * image.height });
  const context = canvas.getContext("2d");
  context.fillStyle = data.colours.paper;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return bytes(canvas.toDataURL("image/png"));
}

function filesRow(name, { png, svg, table }) {
  const row = element("div", "", { class: "files" });
  const button = (text, label, act) => {
    const one = element("button", text, { type: "button", title: label });
    one.addEventListener("click", act);
    row.append(one);
  };
  button("PNG", "Save this picture as PNG", async () => save(`${name}.png`, await png(), "image/png"));
  button("SVG", "Save this picture as SVG", () => save(`${name}.svg`, svg(), "image/svg+xml"));
  if (table) button("CSV", "Save the data of this picture", () => save(`${name}.csv`, csv(table()), "text/csv;charset=utf-8"));
  button("Command", "Show the command that makes this page", () => {
    const shown = row.querySelector("code");
    if (shown) shown.remove();
    else row.append(element("code", data.command));
  });
  return row;
}

function cellsTable(scape) {
  const ways = Object.keys(scape.cells.texts);
  const splits = Object.keys(scape.splits);
  const head = ["landscape", "lr", scape.way, "seeds", "diverged", "tied", ...splits.map((split) => split || "error"), ...ways.map((way) => `${way}_text`)];
  const rows = scape.cells.decay.map((decay, at) => [
    scape.title, scape.lrs[scape.cells.lr[at]], decay, scape.cells.seeds[at], scape.cells.diverged[at], scape.cells.tied[at],
    ...splits.map((split) => scape.splits[split].values[at]), ...ways.map((way) => scape.cells.texts[way][at]),
  ]);
  return [head, ...rows];
}

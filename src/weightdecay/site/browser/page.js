// The page: what is shown, the controls that change it, and one panel per landscape.

const data = JSON.parse(document.getElementById("data").textContent);
const MARKS = { recommended: "recommended ◆", ridge: "ridge", ties: "ties ▢", outliers: "outliers △", twins: "twins ◎", rules: "rules ◀" };
const HAS = {
  recommended: (scape) => scape.advice,
  ridge: (scape) => scape.advice?.line || scape.advice?.ridge.length,
  ties: (scape) => scape.cells.tied.includes(1) && !scape.scattered,
  outliers: (scape) => scape.cells.outlier.includes(1),
  twins: (scape) => scape.cells.twin.some(Boolean),
  rules: (scape) => scape.moves.length,
};
const state = {
  split: Object.keys(data.splits)[0],
  way: Object.keys(data.ways)[0],
  marks: Object.fromEntries(Object.keys(MARKS).map((name) => [name, true])),
  budgets: new Map(),
  rates: new Map(),
  pinned: [],
};
const FRAME = 30; // milliseconds of drawing before the browser may paint
const PARTS = ["axes", "cells", "marks", "rates"]; // of a picture, which can be drawn without the others
const panels = [];
let printing = false;
let waiting = 0;

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function choice(place, type, name, text, checked, act) {
  const label = element("label", "");
  const input = element("input", "", { type, name });
  input.checked = checked;
  input.addEventListener("change", () => act(input.checked));
  label.append(input, text);
  document.getElementById(place).append(label);
}

function controls() {
  for (const label of document.querySelectorAll("#controls label")) label.remove();
  const splits = Object.keys(data.splits);
  if (!splits.includes(state.split)) [state.split] = splits;
  for (const split of splits) {
    choice("choose-split", "radio", "split", split || "as given", split === state.split, () => {
      state.split = split;
      drawAll(["cells"]);
    });
  }
  const ways = Object.keys(data.ways).filter((way) => data.landscapes.some((scape) => scape.ways.includes(way)));
  if (ways.length && !ways.includes(state.way)) [state.way] = ways;
  for (const way of ways) {
    choice("choose-way", "radio", "way", data.ways[way], way === state.way, () => {
      state.way = way;
      drawAll();
    });
  }
  document.getElementById("choose-way").hidden = ways.length < 2;
  document.getElementById("choose-split").hidden = splits.length < 2;
  for (const [name, text] of Object.entries(MARKS)) {
    if (data.landscapes.some(HAS[name])) choice("choose-marks", "checkbox", name, text, state.marks[name], (checked) => {
      state.marks[name] = checked;
      drawAll(["marks"]);
    });
  }
  state.budgets.clear();
  for (const { factor, values } of data.budgets) budgetControl(factor, values);
}

// A slider over the amounts of one factor of the budget; its last place is all of them.
function budgetControl(factor, values) {
  const place = document.getElementById("choose-budget");
  place.hidden = false;
  const input = element("input", "", { type: "range", min: "0", max: String(values.length), step: "1", name: factor });
  const text = element("span", "");
  const label = element("label", `${factor} `);
  const set = () => {
    const at = Number(input.value);
    state.budgets.set(factor, at < values.length ? at : null);
    text.textContent = values[at] ?? "all budgets";
    input.setAttribute("aria-valuetext", text.textContent);
  };
  input.value = String(values.length);
  set();
  input.addEventListener("input", () => {
    set();
    drawAll([]);
  });
  label.append(input, text);
  place.append(label);
}

function isShown(scape) {
  return [...state.budgets].every(([factor, at]) => at === null || !(factor in scape.budget) || scape.budget[factor] === at);
}

// The card of a landscape. Those that nothing is known about have none.
function answerOf(scape, at) {
  const named = (card) => card?.querySelector("h2").textContent === scape.title;
  const card = document.getElementById(`answer-${at}`);
  return named(card) ? card : [...document.querySelectorAll("#answers article")].find(named);
}

function addPanel(scape, at) {
  const figure = element("figure", "");
  const picture = element("div", "", {
    class: "picture", tabindex: "0", role: "application", "aria-roledescription": "landscape, move between cells with arrow keys",
  });
  const panel = { scape, figure, picture, s: element("p", "", { class: "s" }), answer: answerOf(scape, at), layers: new Map(), due: new Set(PARTS) };
  figure.append(element("h3", scape.title), panel.s, picture);
  if (scape.moves.length) {
    figure.append(...rateControl(panel));
    drawRate(panel);
  }
  figure.append(filesOf(() => [`${scape.title}: ${data.splits[splitOf(scape)]}`, (how) => heatmap(scape, how)], () => cellsTable(scape), `landscape-${at + 1}`));
  document.getElementById("panels").append(figure);
  panels.push(panel);
}

function startPanel(panel) {
  panel.chart = echarts.init(panel.picture, null, { renderer: isLarge(panel.scape) ? "canvas" : "svg" });
  listen(panel);
  if (panel.scape.moves.length) dragRate(panel);
}

// Write what a panel says. The parts of its picture are drawn when it is in sight: see `refresh`.
function drawPanel(panel, parts) {
  const { scape, figure, picture } = panel;
  const shown = isShown(scape);
  figure.hidden = !shown;
  if (panel.answer) panel.answer.hidden = !shown;
  for (const part of parts) panel.due.add(part);
  const way = wayOf(scape, state.way);
  panel.s.textContent = scape.advice ? scape.advice.s[way === "torch" ? "torch" : "paper"] : "";
  const exponent = scape.advice ? `; ${panel.s.textContent}` : "";
  picture.setAttribute("aria-label", `${scape.words} The picture shows ${data.splits[splitOf(scape)]}${exponent}.${progressWords(scape)}`);
}

// Draw what is in sight and out of date, and let the browser paint and listen in between.
function refresh() {
  cancelAnimationFrame(waiting);
  const started = performance.now();
  const due = panels.filter((panel) => panel.due.size && !panel.figure.hidden && (panel.inSight || printing));
  // Sizes are read before anything is drawn, so that the browser lays the page out once.
  for (const panel of due) panel.resized = panel.chart && !fits(panel.chart, panel.picture);
  const late = () => !printing && performance.now() - started > FRAME;
  while (due.length && !late()) drawPicture(due.shift());
  document.getElementById("panels").setAttribute("aria-busy", String(due.length > 0));
  if (due.length) waiting = requestAnimationFrame(refresh);
}

function fits(chart, picture) {
  return chart.getWidth() === picture.clientWidth && chart.getHeight() === picture.clientHeight;
}

// Draw the parts of a picture that are due. All parts stand on its axes.
function drawPicture(panel) {
  const { scape, due } = panel;
  if (!panel.chart) startPanel(panel);
  else if (panel.resized) panel.chart.resize();
  if (panel.resized || due.has("axes")) PARTS.forEach((part) => due.add(part));
  outline(panel);
  if (due.has("axes")) removeLayers(panel); // the library paints at once, and would paint the old ones
  if (due.has("axes") || (due.has("cells") && !isLarge(scape))) panel.chart.setOption(heatmap(scape), { replaceMerge: ["series"] });
  if (due.has("cells") && isLarge(scape)) drawCells(panel);
  if (due.has("marks")) drawMarks(panel);
  if (due.has("rates") && scape.moves.length) drawRate(panel);
  if (due.has("marks") || due.has("rates")) overlay(panel);
  due.clear();
}

function drawScale() {
  const bars = Object.entries(data.scales[state.split]).flatMap(([metric, scale]) => {
    const bar = element("span", "", { class: "bar" });
    bar.style.background = `linear-gradient(to right, ${data.colours.stops.join(", ")})`;
    const part = element("span", `${metric || data.splits[state.split]}: ${scale.texts[0]}`);
    part.append(bar, `${scale.texts[1]}${scale.beyond ? " and above" : ""}`);
    return [part];
  });
  const place = document.getElementById("scale");
  place.hidden = !bars.length;
  place.replaceChildren(...bars);
  place.setAttribute("aria-label", `One colour scale for all landscapes. ${place.textContent}. Bright is good.`);
}

// Bring these parts of every picture up to date, and all that is written about them.
function drawAll(parts = PARTS) {
  hideTip();
  if (data.landscapes.length) drawScale();
  for (const panel of panels) drawPanel(panel, parts);
  refresh();
  if (parts.includes("cells")) setTimeout(drawCurves);
  if (parts.includes("axes")) setTimeout(drawForest);
}

// Make the controls and a panel for each landscape. With `first`, begin with some curves.
function build(first) {
  for (const panel of panels.splice(0)) {
    sight.unobserve(panel.figure);
    outline(panel); // a picture that loses the focus removes its frame, which needs the chart
    panel.chart?.dispose();
    panel.figure.remove();
  }
  layouts.clear();
  document.getElementById("landscapes").hidden = !data.landscapes.length;
  controls();
  data.landscapes.forEach(addPanel);
  if (first) {
    const known = data.landscapes.filter((scape) => scape.curves).slice(0, 4);
    state.pinned = known.map((scape) => [scape, bestCell(scape)]);
  }
  document.getElementById("about-curves").hidden = !data.landscapes.some((scape) => scape.curves);
  document.getElementById("about-marks").textContent = data.aboutMarks;
  document.getElementById("about-rules").hidden = !data.landscapes.some(HAS.rules);
  drawAll();
  for (const { figure } of panels) sight.observe(figure);
}

const sight = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    const panel = panels.find(({ figure }) => figure === target);
    if (panel) panel.inSight = isIntersecting;
    if (target.id === "curve-picture") curvesInSight = isIntersecting;
  }
  refresh();
  refreshCurves();
});

function fit() {
  for (const panel of panels) panel.due.add("axes");
  refresh();
  drawCurves();
  drawForest();
}

function start() {
  sight.observe(document.getElementById("curve-picture"));
  build(true);
  document.getElementById("clear-curves").addEventListener("click", () => {
    state.pinned = [];
    drawCurves();
  });
  document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width === width) return;
    width = contentRect.width;
    fit();
  }).observe(document.querySelector("main"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll());
  matchMedia("print").addEventListener("change", ({ matches }) => {
    printing = matches;
    drawAll();
    fit();
  });
  document.querySelectorAll("figure.still").forEach(stillFiles);
  addEventListener("hashchange", openClaim);
  openClaim();
  if (data.live) startLive();
  else loaded();
}

function loaded() {
  document.getElementById("loading").hidden = true;
}

start();

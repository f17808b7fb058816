// Learning curves: the median over seeds, with the band that holds the middle 60 %.

const LINE = 22; // the height of a line of the legend
const ORDER = [2, 0, 4, 1, 3];
let curveChart = null;
let curvesInSight = false;
let curvesDue = true;

function curveSeries(scape, at, split, colour, name) {
  const row = scape.curves?.rows[split]?.[at];
  if (!row) return null;
  const { epochs } = scape.curves;
  const [middle, low, high] = row;
  const line = {
    type: "line", name, showSymbol: epochs.length < 3, symbolSize: 5, lineStyle: { color: colour, width: 2 }, itemStyle: { color: colour },
    data: middle.map((value, place) => [epochs[place], value]), animation: false, emphasis: { focus: "series" },
  };
  if (!low) return [line];
  const band = {
    type: "custom", silent: true, animation: false, data: [[epochs[0], middle[0]]], itemStyle: { color: colour },
    renderItem: (_, api) => {
      const known = epochs.map((_, place) => place).filter((place) => low[place] !== null && high[place] !== null);
      const points = [...known.map((place) => [epochs[place], low[place]]), ...known.reverse().map((place) => [epochs[place], high[place]])];
      return { type: "polygon", shape: { points: points.map((point) => api.coord(point)) }, style: { fill: colour, opacity: 0.16 } };
    },
    clip: true,
  };
  return [band, line];
}

function curveAxes(scape, { small = false, colours = ink() } = {}) {
  const label = { color: colours.ink, fontSize: small ? 10 : 12, fontFamily: FONT };
  const unit = scape.metric === null ? " %" : "";
  const line = { lineStyle: { color: colours.faint } };
  const nameTextStyle = { color: colours.muted, fontSize: 13, fontFamily: FONT };
  return {
    grid: small ? { left: 40, right: 8, top: 10, bottom: 20 } : { left: 66, right: 24, top: 20, bottom: 48 },
    xAxis: {
      type: "value", name: small ? "" : "epoch", nameLocation: "middle", nameGap: 28, nameTextStyle, min: "dataMin", max: "dataMax",
      axisLabel: { ...label, hideOverlap: true }, axisLine: line, splitLine: { show: false },
    },
    yAxis: {
      type: "value", scale: true, name: small ? "" : data.splits[splitOf(scape)], nameLocation: "middle", nameGap: 48, nameTextStyle,
      axisLabel: { ...label, formatter: (value) => `${value}${unit}` }, splitNumber: small ? 2 : 5, splitLine: line,
    },
  };
}

function pinnedCurves(colours = ink()) {
  const counts = new Map();
  return state.pinned.flatMap(([scape, at]) => {
    const used = counts.get(scape) ?? 0;
    counts.set(scape, used + 1);
    const own = scape.colours[ORDER[used % ORDER.length]];
    const colour = colours.dark ? echarts.color.lerp(0.35, [own, "#ffffff"]) : own;
    const series = curveSeries(scape, at, splitOf(scape), colour, `${scape.title}: ${setting(scape, at)}`);
    return series ? [{ scape, at, series }] : [];
  });
}

function curvesOption({ title = false, colours = ink(), width = 900 } = {}) {
  const found = pinnedCurves(colours);
  const first = found.length ? found[0].scape : data.landscapes.find((scape) => scape.curves);
  const axes = curveAxes(first, { colours });
  return {
    ...axes,
    grid: { ...axes.grid, top: 20 + LINE * found.length },
    legend: {
      orient: "vertical", top: 0, left: 0, itemGap: 6, icon: "roundRect", itemHeight: 4, selectedMode: !title,
      textStyle: { color: colours.ink, fontFamily: FONT, fontSize: 12, width: width - 60, overflow: "truncate" },
      data: found.map(({ series }) => series[series.length - 1].name), formatter: (name) => name,
    },
    series: found.flatMap(({ series }) => series),
  };
}

function pin(scape, at) {
  if (!scape.curves) return;
  const place = state.pinned.findIndex(([own, cell]) => own === scape && cell === at);
  if (place >= 0) state.pinned.splice(place, 1);
  else state.pinned.push([scape, at]);
  drawCurves();
  const done = place >= 0 ? "Removed the curve of" : "Added the curve of";
  document.getElementById("live").textContent = `${done} ${scape.title}, ${setting(scape, at)}.`;
}

// Write what the curves are. Their picture is drawn when it is in sight: see `refreshCurves`.
function drawCurves() {
  const section = document.getElementById("curves");
  section.hidden = !data.landscapes.some((scape) => scape.curves);
  if (section.hidden) return;
  const host = document.getElementById("curve-picture");
  if (!curveChart) {
    const picture = element("div", "", { class: "picture", role: "img", tabindex: "0" });
    host.append(picture, filesOf(() => ["Learning curves", curvesOption], curvesTable, "curves"));
    curveChart = echarts.init(picture, null, { renderer: "svg" });
  }
  const found = pinnedCurves();
  host.firstChild.style.height = `${300 + LINE * found.length}px`;
  const words = found.map(({ scape, at }) => {
    const line = scape.curves.rows[splitOf(scape)][at][0];
    return `${scape.title}, ${setting(scape, at)}: ends at ${line[line.length - 1] ?? "no finite value"}`;
  });
  host.firstChild.setAttribute("aria-label", `Learning curves of ${found.length} cell${found.length === 1 ? "" : "s"}. ${words.join(". ")}`);
  document.getElementById("curve-words").textContent = curveWords(found);
  curvesDue = true;
  refreshCurves();
}

function refreshCurves() {
  if (!curveChart || !curvesDue || !(curvesInSight || printing)) return;
  const host = document.getElementById("curve-picture");
  if (!fits(curveChart, host.firstChild)) curveChart.resize();
  curveChart.setOption(curvesOption({ width: host.clientWidth }), { notMerge: true });
  curvesDue = false;
}

function curveWords(found) {
  const thin = data.landscapes.find((scape) => scape.curves && scape.curves.epochs.length < scape.curves.of);
  const said = ["Lines are medians over seeds, bands hold the middle 60 %. Click cells in the landscapes to add and remove curves."];
  if (!found.length) said.push("No curve is chosen.");
  if (thin) said.push(`To keep this file small, curves show ${thin.curves.epochs.length} of ${thin.curves.of} epochs.`);
  return said.join(" ");
}

const CURVE_COLUMNS = ["landscape", "lr", "decay", "split", "epoch", "median", "quantile_20", "quantile_80"];

function curveRows(scape, at, split) {
  const [middle, low, high] = scape.curves.rows[split][at];
  return scape.curves.epochs.map((epoch, place) =>
    [scape.title, scape.lrs[scape.cells.lr[at]], scape.cells.decay[at], split, epoch, middle[place], low?.[place], high?.[place]]);
}

function curvesTable() {
  return [CURVE_COLUMNS, ...pinnedCurves().flatMap(({ scape, at }) => curveRows(scape, at, splitOf(scape)))];
}

// The curves of every cell and split of the page.
function everyCurve() {
  const rows = data.landscapes.filter((scape) => scape.curves).flatMap((scape) => Object.entries(scape.curves.rows)
    .flatMap(([split, own]) => own.flatMap((row, at) => (row ? curveRows(scape, at, split) : []))));
  return [CURVE_COLUMNS, ...rows];
}

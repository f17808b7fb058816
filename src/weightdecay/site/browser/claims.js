// Claims as a forest plot: one row per measured number, one axis per unit.

const ROW = 46; // the height of a row
const TALL = 74; // the same in a narrow window, where a row's words stand above its line
const AXIS = 62; // what an axis needs below its rows
const NARROW = 900;
let forest = null;

// Rows by unit, in the order of the claims.
function byUnit() {
  const groups = new Map();
  for (const row of data.claims) {
    if (!groups.has(row.unit)) groups.set(row.unit, []);
    groups.get(row.unit).push(row);
  }
  return [...groups];
}

// The ends of an axis: all estimates and bounds are inside, and intervals unless they are very long.
function reach(rows) {
  const inner = rows.flatMap(({ ends: [value, , , above, below] }) => [value, above, below]).filter((end) => end !== null);
  const [low, high] = [Math.min(...inner), Math.max(...inner)];
  const most = 4 * (high - low) || Math.max(1, Math.abs(high));
  const outer = rows.flatMap(({ ends }) => ends.slice(1, 3)).filter((end) => end !== null && end >= low - most && end <= high + most);
  const [from, to] = [Math.min(low, ...outer), Math.max(high, ...outer)];
  const pad = 0.06 * (to - from || 1);
  return [from - pad, to + pad];
}

function outcomeColour(outcome, colours) {
  return data.colours.outcomes[outcome][colours.dark ? 2 : 1];
}

function forestOption({ colours = ink(), width = 900 } = {}) {
  const narrow = width < NARROW;
  const height = narrow ? TALL : ROW;
  const left = narrow ? 12 : Math.round(0.48 * width);
  const right = narrow ? 12 : 175;
  const option = { animation: false, grid: [], xAxis: [], yAxis: [], series: [] };
  let top = 8;
  byUnit().forEach(([unit, rows], at) => {
    const [min, max] = reach(rows);
    option.grid.push({ left, right, top, height: rows.length * height });
    option.xAxis.push({
      type: "value", gridIndex: at, min, max, name: unit, nameLocation: "middle", nameGap: 26, splitNumber: narrow ? 4 : 6,
      nameTextStyle: { color: colours.muted, fontSize: 13, fontFamily: FONT }, axisLine: { show: true, lineStyle: { color: colours.faint } },
      axisLabel: { color: colours.ink, fontSize: 12, fontFamily: FONT, showMinLabel: false, showMaxLabel: false, formatter: minus },
      splitLine: { lineStyle: { color: colours.faint, opacity: 0.5 } },
    });
    option.yAxis.push({ type: "value", gridIndex: at, min: 0, max: rows.length, inverse: true, show: false });
    option.series.push({
      type: "custom", xAxisIndex: at, yAxisIndex: at, silent: true, clip: false, data: rows.map((_, place) => [rows[place].ends[0], place + 0.5]),
      renderItem: ({ dataIndex, coordSys }, api) => forestRow(rows[dataIndex], dataIndex, [min, max], { api, coordSys, colours, narrow, height, width }),
    });
    top += rows.length * height + AXIS;
  });
  return { ...option, height: top };
}

function minus(value) {
  return String(Number(value.toPrecision(6))).replace("-", "−");
}

function forestRow(row, at, [min, max], { api, coordSys, colours, narrow, height, width }) {
  const [value, low, high, above, below] = row.ends;
  const inside = (end) => Math.min(max, Math.max(min, end));
  const across = (end) => api.coord([inside(end), at + 0.5])[0];
  const [, middle] = api.coord([value, at + 0.5]);
  const y = narrow ? middle + 22 : middle;
  const colour = outcomeColour(row.outcome, colours);
  const [from, to] = [low ?? -Infinity, high ?? Infinity];
  const zone = [across(above ?? -Infinity), across(below ?? Infinity)];
  const bounded = above !== null || below !== null;
  const words = row.part ? `${row.claim}: ${row.part}` : row.claim;
  const label = {
    x: narrow ? coordSys.x : 0, y: narrow ? middle - height / 2 + 4 : middle, fill: colours.ink, fontSize: 13, fontFamily: FONT, lineHeight: 16,
    width: narrow ? coordSys.width : coordSys.x - 30, overflow: "break", align: "left", verticalAlign: narrow ? "top" : "middle",
    text: `${data.colours.outcomes[row.outcome][0]} ${narrow ? `${row.claim}${row.part ? `: ${row.part}` : ""}` : words}`,
  };
  const told = {
    text: row.said.replace(" [", "\n["), x: width - 6, y: middle, align: "right", verticalAlign: "middle", fill: colours.muted, fontSize: 12, fontFamily: FONT,
    width: 165, overflow: "break", lineHeight: 15,
  };
  const arrows = [[from < min, across(min), -1], [to > max, across(max), 1]].filter(([beyond]) => beyond).map(([, x, way]) => ({
    type: "polygon", shape: { points: [[x + 7 * way, y], [x, y - 5], [x, y + 5]] }, style: { fill: colour },
  }));
  return {
    type: "group",
    children: [
      ...(bounded ? [{
        type: "rect", shape: { x: zone[0], y: y - (narrow ? 10 : 0.4 * height), width: zone[1] - zone[0], height: narrow ? 20 : 0.8 * height },
        style: { fill: colours.muted, opacity: 0.14 },
      }] : []),
      { type: "line", shape: { x1: across(from), y1: y, x2: across(to), y2: y }, style: { stroke: colour, lineWidth: 3, lineCap: "round" } },
      ...arrows,
      { type: "circle", shape: { cx: across(value), cy: y, r: 5 }, style: { fill: colour, stroke: colours.paper, lineWidth: 1.5 } },
      { type: "text", style: label },
      ...(narrow ? [] : [{ type: "text", style: told }]),
    ],
  };
}

function drawForest() {
  const host = document.getElementById("forest");
  if (forest && !host?.contains(forest.getDom())) {
    forest.dispose(); // a server has sent other claims
    forest = null;
  }
  if (!host) return;
  if (!forest) {
    const picture = element("div", "", { class: "picture", role: "img", tabindex: "0" });
    host.append(picture, filesOf(() => ["Claims", forestOption], claimsTable, "claims"));
    forest = echarts.init(picture, null, { renderer: "svg" });
    const said = data.claims.map((row) => `${row.outcome}: ${row.claim}${row.part ? `, ${row.part}` : ""}, ${row.said}`);
    picture.setAttribute("aria-label", `Claims and their 95 % intervals. ${said.join(". ")}`);
  }
  const { height, ...option } = forestOption({ width: host.clientWidth });
  host.firstChild.style.height = `${height}px`;
  forest.resize();
  forest.setOption(option, { notMerge: true });
}

function claimsTable() {
  const head = ["claim", "part", "outcome", "unit", "value", "low", "high", "held_above", "held_below"];
  return [head, ...data.claims.map((row) => [row.claim, row.part, row.outcome, row.unit, ...row.ends])];
}

// A link to a claim, such as that of an index, shows its words.
function openClaim() {
  const claim = /^#claim-\d+$/.test(location.hash) ? document.getElementById(location.hash.slice(1)) : null;
  if (!claim) return;
  claim.closest("details").open = true;
  claim.scrollIntoView();
}

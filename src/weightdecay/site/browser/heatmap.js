// The picture of one landscape: its cells in the colours of their errors, and the marks on them.

const FONT = "system-ui, sans-serif";
const LARGE = 600; // with more cells, a picture is drawn on a canvas, in fewer pieces
const MANY = 2400; // with more cells on a page, all its pictures are
const STEPS = 128; // colours of errors
const ROWS = 16; // labels that fit beside a picture
const GAP_OF_CELLS = 0.5; // pixels
const DOT = 6; // the radius of a scattered setting
const GRID = { left: 62, right: 26, top: 20, bottom: 46 }; // around the cells

// Colours of the mode that the reader has; paper is light.
function ink() {
  const dark = !printing && matchMedia("(prefers-color-scheme: dark)").matches;
  return dark
    ? { ink: "#e9e7e2", muted: "#a5a29b", faint: "#47463f", paper: data.colours.ink, lost: "#3a3936", dark }
    : { ...data.colours, lost: "#e4e0dc", dark };
}

// The scale of a landscape's colours. One without results does not know its metric yet, and has that of the others, if any.
function scaleOf(scape) {
  const scales = data.scales[splitOf(scape)];
  return scales[scape.metric || ""] ?? Object.values(scales)[0];
}

// A landscape without the split that is asked for shows its own.
function splitOf(scape) {
  return state.split in scape.splits ? state.split : Object.keys(scape.splits)[0];
}

function fill(scape, at, colours) {
  const value = scape.splits[splitOf(scape)].values[at];
  if (!scape.cells.seeds[at]) return colours.paper;
  if (value === null || scape.cells.diverged[at] === scape.cells.seeds[at]) return colours.lost;
  const { low, high } = scaleOf(scape);
  return shade(Math.round(STEPS * Math.min(1, Math.max(0, (value - low) / (high - low)))));
}

const shadesOfErrors = [];
function shade(step) {
  shadesOfErrors[step] ??= echarts.color.lerp(step / STEPS, data.colours.stops);
  return shadesOfErrors[step];
}

function heatmap(scape, { title = false, colours = ink() } = {}) {
  const way = wayOf(scape, state.way);
  const found = layout(scape, way);
  const pad = 0.02 * (found.right - found.left);
  const along = ticks(found.positive, found.right);
  if (found.zero !== null) along.unshift([found.zero, "0"]);
  return {
    animation: !isLarge(scape) && !title && !matchMedia("(prefers-reduced-motion: reduce)").matches,
    animationDuration: 0,
    animationDurationUpdate: 450,
    grid: title ? { ...GRID, right: 110, top: 88 } : GRID,
    ...(title ? { about: scape.advice ? data.aboutMarks : "" } : {}),
    xAxis: axis(along, data.ways[way] || scape.axis, colours, {
      min: found.left - pad, max: found.right + pad, nameGap: 28,
    }),
    yAxis: axis(rateTicks(scape, found), "learning rate α", colours, {
      min: found.bottom, max: found.top, nameGap: 48,
    }),
    visualMap: title && scaleOf(scape) ? colourBar(scape, colours) : undefined,
    series: title ? [cells(scape, found, colours), ...markSeries(scape, way, found, colours)] : [isLarge(scape) ? NO_CELLS : cells(scape, found, colours)],
  };
}

// The scale of colours beside a saved picture. On the page, one stands above all pictures.
function colourBar(scape, colours) {
  const { low, high, texts, beyond } = scaleOf(scape);
  return {
    type: "continuous", min: low, max: high, right: 12, top: "middle", itemHeight: 260, calculable: false, hoverLink: false, seriesIndex: 0,
    text: [`${beyond ? "≥ " : ""}${texts[1]}`, texts[0]], inRange: { color: data.colours.stops },
    textStyle: { color: colours.ink, fontSize: 12, fontFamily: FONT },
  };
}

// Every learning rate of a grid has its label, unless they are scattered or many.
function rateTicks(scape, found) {
  if (scape.scattered || scape.lrs.length > ROWS) return ticks(found.bottom, found.top);
  return scape.lrs.map((lr, at) => [Math.log2(lr), scape.lrTexts[at]]);
}

function axis(labels, name, colours, more) {
  const texts = new Map(labels);
  const places = labels.map(([place]) => place);
  return {
    type: "value", name, nameLocation: "middle", ...more,
    nameTextStyle: { color: colours.muted, fontSize: 13, fontFamily: FONT },
    axisLine: { show: false }, splitLine: { show: false },
    axisTick: { show: false, customValues: places },
    axisLabel: {
      customValues: places, hideOverlap: true, color: colours.ink, fontSize: 12, fontFamily: FONT,
      formatter: (place) => texts.get(place) ?? nearest(texts, place),
    },
  };
}

// The library may hand back a place with other last digits than it was given.
function nearest(texts, place) {
  for (const [own, text] of texts) if (Math.abs(own - place) < 1e-6) return text;
  return "";
}

// On the page, many cells are a layer: see `drawCells`.
const NO_CELLS = { type: "custom", id: "cells", data: [], renderItem: () => null };

// The cells. Each is an item of its own, which moves when the axis changes. Of many, those with the
// same colour are one path, which is much faster.
function cells(scape, found, colours) {
  const style = (at) => ({
    fill: fill(scape, at, colours), stroke: scape.cells.seeds[at] ? colours.paper : colours.faint, lineWidth: 0.5,
  });
  const series = { type: "custom", id: "cells", silent: true, progressive: 0 };
  if (isLarge(scape)) {
    const draw = (_, api) => ({ type: "group", children: paths(scape, found, colours, placing((place) => api.coord(place))) });
    return { ...series, data: [[found.left, found.bottom]], renderItem: draw };
  }
  return {
    ...series,
    data: found.boxes.map((one) => [one.middle, one.height]),
    renderItem: ({ dataIndex }, api) => {
      const one = found.boxes[dataIndex];
      if (isDot(scape, dataIndex)) {
        const [cx, cy] = api.coord([one.middle, one.height]);
        return { type: "circle", shape: { cx, cy, r: DOT }, style: style(dataIndex) };
      }
      return { type: "rect", shape: rectangle(one, (place) => api.coord(place)), style: style(dataIndex), transition: ["shape"] };
    },
  };
}

function isLarge(scape) {
  return scape.cells.decay.length > LARGE || data.landscapes.reduce((sum, one) => sum + one.cells.decay.length, 0) > MANY;
}

// Scattered settings are dots.
function isDot(scape, at) {
  return scape.scattered && scape.cells.decay[at] > 0;
}

function rectangle(one, at) {
  const [x, y] = at([one.left, one.top]);
  const [right, bottom] = at([one.right, one.bottom]);
  return { x, y, width: right - x, height: bottom - y };
}

// A gap between cells costs nothing to draw, unlike a line.
function narrower({ x: left, y: top, width, height }) {
  return { x: left, y: top, width: width - GAP_OF_CELLS, height: height - GAP_OF_CELLS };
}

// Many cells of one colour as one shape, without the detour over a text of commands.
echarts.graphic.registerShape("cells", echarts.graphic.extendShape({
  shape: { boxes: [], dots: [] },
  buildPath: (path, { boxes, dots }) => {
    for (const { x: left, y: top, width, height } of boxes) path.rect(left, top, width, height);
    for (const [cx, cy] of dots) {
      path.moveTo(cx + DOT, cy);
      path.arc(cx, cy, DOT, 0, 2 * Math.PI);
    }
  },
}));

// Draw many cells in their present colours. The axes and the marks stay as they are.
function drawCells(panel) {
  const { scape, chart } = panel;
  const found = layout(scape, wayOf(scape, state.way));
  layer(panel, "cells", paths(scape, found, ink(), placesOf(chart)), { zlevel: 0, z: 1 });
}

function paths(scape, found, colours, place) {
  const parts = new Map();
  found.boxes.forEach((one, cell) => {
    const colour = fill(scape, cell, colours);
    if (!parts.has(colour)) parts.set(colour, { boxes: [], dots: [] });
    if (isDot(scape, cell)) parts.get(colour).dots.push(place([one.middle, one.height]));
    else parts.get(colour).boxes.push(narrower(rectangle(one, place)));
  });
  return [...parts].map(([colour, shape]) => ({
    type: "cells", shape, style: { fill: colour, stroke: colour === colours.paper ? colours.faint : "none", lineWidth: 0.5 },
  }));
}


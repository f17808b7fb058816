// The picture of one landscape: its cells in the colours of their errors, and the marks on them.

const FONT = "system-ui, sans-serif";
const LARGE = 600; // with more cells, a picture is drawn on a canvas, in fewer pieces
const STEPS = 128; // colours of errors
const ROWS = 16; // labels that fit beside a picture
const DOT = 6; // the radius of a scattered setting

// Colours of the mode that the reader has; paper is light.
function ink() {
  const dark = !printing && matchMedia("(prefers-color-scheme: dark)").matches;
  return dark
    ? { ink: "#e9e7e2", muted: "#a5a29b", faint: "#47463f", paper: data.colours.ink, lost: "#3a3936", dark }
    : { ...data.colours, lost: "#e4e0dc", dark };
}

function scaleOf(scape) {
  return data.scales[splitOf(scape)][scape.metric || ""];
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
    grid: { left: 62, right: title ? 110 : 26, top: title ? 64 : 20, bottom: 46 },
    xAxis: axis(along, data.ways[way] || scape.axis, colours, {
      min: found.left - pad, max: found.right + pad, nameGap: 28,
    }),
    yAxis: axis(rateTicks(scape, found), "learning rate α", colours, {
      min: found.bottom, max: found.top, nameGap: 48,
    }),
    visualMap: title ? colourBar(scape, colours) : undefined,
    series: [cells(scape, found, colours), ...marks(scape, way, found, colours, title)],
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

// The cells. Each is an item of its own, which moves when the axis changes. Of many, those with the
// same colour are one path, which is much faster.
function cells(scape, found, colours) {
  const style = (at) => ({
    fill: fill(scape, at, colours), stroke: scape.cells.seeds[at] ? colours.paper : colours.faint, lineWidth: 0.5,
  });
  const series = { type: "custom", id: "cells", silent: true, progressive: 0 };
  if (isLarge(scape)) {
    const draw = (_, api) => ({ type: "group", children: paths(scape, found, colours, (place) => api.coord(place)) });
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
  return scape.cells.decay.length > LARGE;
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

function paths(scape, found, colours, at) {
  const parts = new Map();
  // The axes are linear: two points tell where all others are.
  const [[x0, y0], [x1, y1]] = [at([0, 0]), at([1, 1])];
  const place = ([across, up]) => [x0 + across * (x1 - x0), y0 + up * (y1 - y0)];
  found.boxes.forEach((one, cell) => {
    const colour = fill(scape, cell, colours);
    if (!parts.has(colour)) parts.set(colour, { boxes: [], dots: [] });
    if (isDot(scape, cell)) parts.get(colour).dots.push(place([one.middle, one.height]));
    else parts.get(colour).boxes.push(rectangle(one, place));
  });
  return [...parts].map(([colour, shape]) => ({
    type: "cells", shape, style: { fill: colour, stroke: colour === colours.paper ? colours.faint : colours.paper, lineWidth: 0.5 },
  }));
}

// `saved`: for a file. On the page, rules are drawn on top, since they move: see `overlay`.
function marks(scape, way, found, colours, saved) {
  const { advice } = scape;
  const kept = [mark("diverged", found, (at) => crosses(scape, found, at))];
  if (state.marks.ties && !scape.scattered) {
    kept.push(mark("ties", found, (at) => haloed(border(found, scape.cells.tied), at, 2)));
  }
  if (state.marks.ridge && advice) kept.push(mark("ridge", found, (at) => ridge(scape, way, at)));
  if (state.marks.outliers) kept.push(mark("outliers", found, (at) => triangles(scape, found, at)));
  if (state.marks.twins && HAS.twins(scape)) kept.push(mark("twins", found, (at) => rings(scape, found, at)));
  if (state.marks.rules && saved) kept.push(mark("rules", found, (at) => ruled(scape, way, found, at, colours)));
  if (state.marks.recommended && advice) kept.push(mark("recommended", found, (at) => recommended(scape, way, at)));
  return kept;
}

// A mark is one item of a series of its own, so that it can be left out.
function mark(id, found, draw) {
  return {
    type: "custom", id, silent: true, data: [[found.left, found.bottom]], animation: false, clip: id !== "rules",
    renderItem: (_, api) => ({ type: "group", children: draw((place) => api.coord(place)) }),
  };
}

// Lines that are visible on any colour: on top of slightly wider white ones.
function haloed(lines, at, width, stroke = data.colours.ink) {
  const paths = lines.map((line) => line.map(at));
  return [[data.colours.paper, width + 2], [stroke, width]].flatMap(([colour, lineWidth]) =>
    paths.map((points) => ({
      type: "polyline", shape: { points }, style: { stroke: colour, lineWidth, fill: "none", lineCap: "round", lineJoin: "round" },
    })));
}

function crosses(scape, found, at) {
  const strokes = [];
  scape.cells.diverged.forEach((count, cell) => {
    if (!count) return;
    const one = found.boxes[cell];
    const [w, h] = [(one.right - one.left) * 0.25, (one.top - one.bottom) * 0.25];
    strokes.push([[one.middle - w, one.height - h], [one.middle + w, one.height + h]]);
    if (count === scape.cells.seeds[cell]) {
      strokes.push([[one.middle - w, one.height + h], [one.middle + w, one.height - h]]);
    }
  });
  return strokes.map((line) => ({
    type: "polyline", shape: { points: line.map(at) }, style: { stroke: data.colours.muted, lineWidth: 1.2, fill: "none" },
  }));
}

// The best decay at each learning rate within one standard error, and the line through them.
function ridge(scape, way, at) {
  const drawn = [];
  const points = scape.advice.ridge.filter((point) => point.every(Number.isFinite));
  const side = (sign) => points.map(([lr, decay, error]) => at([x(scape, way, lr, decay) + sign * error, Math.log2(lr)]));
  if (points.length > 1) {
    drawn.push({ type: "polygon", shape: { points: [...side(-1), ...side(1).reverse()] }, style: { fill: "#ffffff", opacity: 0.45 } });
  }
  if (scape.advice.line) {
    const [slope, intercept, lowest, highest] = scape.advice.line;
    const line = [lowest, highest].map((lr) => [x(scape, way, lr, 2 ** (intercept + slope * Math.log2(lr))), Math.log2(lr)]);
    drawn.push(...haloed([line], at, 2));
  }
  for (const [cx, cy] of side(0)) {
    drawn.push({ type: "circle", shape: { cx, cy, r: 3.5 }, style: { fill: data.colours.paper, stroke: data.colours.ink, lineWidth: 1.2 } });
  }
  return drawn;
}

function triangles(scape, found, at) {
  return scape.cells.outlier.flatMap((out, cell) => {
    if (!out) return [];
    const [cx, cy] = at([found.boxes[cell].middle, found.boxes[cell].height]);
    const points = [[cx, cy - 7], [cx + 6.5, cy + 5], [cx - 6.5, cy + 5]];
    return [{ type: "polygon", shape: { points }, style: { fill: data.colours.paper, stroke: data.colours.ink, lineWidth: 1.5 } }];
  });
}

// Runs that must agree with others: two rings around the middle of a cell.
function rings(scape, found, at) {
  return scape.cells.twin.flatMap((words, cell) => {
    if (!words) return [];
    const [cx, cy] = at([found.boxes[cell].middle, found.boxes[cell].height]);
    return [[5, data.colours.paper, 3], [5, data.colours.ink, 1.2], [2, data.colours.ink, 1.2]].map(([r, stroke, lineWidth]) => (
      { type: "circle", shape: { cx, cy, r }, style: { fill: "none", stroke, lineWidth } }));
  });
}

function recommended(scape, way, at) {
  const { lr, decay } = scape.advice;
  const place = (rate, value) => [x(scape, way, rate, value), Math.log2(rate)];
  const ranges = [[place(lr[0], decay[1]), place(lr[0], decay[2])], [place(lr[1], decay[0]), place(lr[2], decay[0])]];
  const [cx, cy] = at(place(lr[0], decay[0]));
  const points = [[cx, cy - 9], [cx + 9, cy], [cx, cy + 9], [cx - 9, cy]];
  const style = { fill: data.colours.recommended, stroke: data.colours.paper, lineWidth: 1.5 };
  return [...haloed(ranges, at, 2, data.colours.recommended), { type: "polygon", shape: { points }, style }];
}

// The learning rate that was moved to, and where each rule puts the decay there.
function ruled(scape, way, found, at, colours) {
  const move = moveOf(scape);
  if (!scape.moves.length) return [];
  const height = Math.log2(move ? move.used : scape.moves[0].tuned);
  const [right, y] = at([found.right, height]);
  const handle = { type: "polygon", shape: { points: [[right + 6, y], [right + 18, y - 8], [right + 18, y + 8]] }, style: { fill: colours.ink } };
  if (!move) return [handle];
  // Names stand above and below the line in turn; one that would cover another is left out.
  const ended = [-Infinity, -Infinity];
  const placed = move.decays.map((decay, rule) => [x(scape, way, move.used, decay), rule])
    .filter(([place]) => place >= found.positive && place <= found.right).sort(([a], [b]) => a - b);
  const dots = placed.flatMap(([place, rule], count) => {
    const [cx, cy] = at([place, height]);
    const above = count % 2 === 0;
    const text = data.rules[rule].replace("keep ", "");
    const dot = { type: "circle", shape: { cx, cy, r: 4.5 }, style: { fill: data.colours.ink, stroke: data.colours.paper, lineWidth: 1.5 } };
    const half = 4 * text.length;
    if (cx - half < ended[count % 2]) return [dot];
    ended[count % 2] = cx + half;
    const style = {
      text, x: cx, y: cy + (above ? -7 : 7), align: "center", verticalAlign: above ? "bottom" : "top",
      fill: data.colours.ink, stroke: data.colours.paper, lineWidth: 3, fontSize: 12, fontFamily: FONT,
    };
    return [dot, { type: "text", style }];
  });
  return [...haloed([[[found.positive, height], [found.right, height]]], at, 1), ...dots, handle];
}

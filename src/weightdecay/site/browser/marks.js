// The marks on a landscape: ties, ridge, outliers, twins, what to use, and what the rules do. On the page
// each is a layer on top of the picture, which is drawn without drawing the picture again.

const SHAPES = {
  polyline: echarts.graphic.Polyline, polygon: echarts.graphic.Polygon, circle: echarts.graphic.Circle, text: echarts.graphic.Text,
  cells: echarts.graphic.getShapeClass("cells"),
  // Many lines of one colour as one shape.
  lines: echarts.graphic.extendShape({
    shape: { lines: [] },
    buildPath: (path, { lines }) => {
      for (const [[x0, y0], ...others] of lines) {
        path.moveTo(x0, y0);
        for (const [x1, y1] of others) path.lineTo(x1, y1);
      }
    },
  }),
};
echarts.graphic.registerShape("lines", SHAPES.lines);

// The marks of a landscape, from the lowest to the topmost: what each has to draw, at places that `at` gives.
function marks(scape, way, found) {
  const { advice } = scape;
  return {
    running: (at) => arrows(scape, found, at),
    diverged: (at) => crosses(scape, found, at),
    ties: (at) => (scape.scattered ? [] : haloed(border(found, scape.cells.tied), at, 2)),
    ridge: (at) => (advice ? ridge(scape, way, at) : []),
    outliers: (at) => triangles(scape, found, at),
    twins: (at) => rings(scape, found, at),
    recommended: (at) => (advice ? recommended(scape, way, at) : []),
  };
}

// The marks as series of a picture for a file.
function markSeries(scape, way, found, colours) {
  const drawn = { ...marks(scape, way, found), rules: (at) => ruled(scape, way, found, at, colours) };
  return Object.entries(drawn).filter(([id]) => state.marks[id] ?? true).map(([id, draw]) => ({
    type: "custom", id, silent: true, data: [[found.left, found.bottom]], animation: false, clip: id !== "rules",
    renderItem: (_, api) => ({ type: "group", children: draw((place) => api.coord(place)) }),
  }));
}

// Where a point of the axes is on the screen. The axes are linear: two points tell where all others are.
function placing(at) {
  const [[x0, y0], [x1, y1]] = [at([0, 0]), at([1, 1])];
  return ([across, up]) => [x0 + across * (x1 - x0), y0 + up * (y1 - y0)];
}

function placesOf(chart) {
  return placing((point) => chart.convertToPixel({ gridIndex: 0 }, point));
}

// Draw one layer of a picture anew, or remove it if there is nothing on it. Higher layers (zlevel) are canvases
// of their own: drawing them leaves lower ones alone.
function layer(panel, name, shapes, { zlevel = 1, z = 2, clip = true } = {}) {
  const { chart, layers } = panel;
  removeLayers(panel, [name]);
  if (!shapes.length) return;
  const group = new echarts.graphic.Group({ name });
  if (clip) {
    const { left, right, top, bottom } = GRID;
    const shape = { x: left, y: top, width: chart.getWidth() - left - right, height: chart.getHeight() - top - bottom };
    group.setClipPath(new echarts.graphic.Rect({ shape }));
  }
  for (const { type, shape, style } of shapes) group.add(new SHAPES[type]({ shape, style, silent: true, zlevel, z }));
  chart.getZr().add(group);
  layers.set(name, group);
}

function removeLayers({ chart, layers }, names = [...layers.keys()]) {
  for (const name of names) {
    if (layers.has(name)) chart.getZr().remove(layers.get(name));
    layers.delete(name);
  }
}

function drawMarks(panel) {
  const { scape, chart } = panel;
  const way = wayOf(scape, state.way);
  const at = placesOf(chart);
  Object.entries(marks(scape, way, layout(scape, way))).forEach(([name, draw], order) => {
    layer(panel, name, state.marks[name] ?? true ? draw(at) : [], { z: 2 + order });
  });
}

// Lines that are visible on any colour: on top of slightly wider white ones.
function haloed(lines, at, width, stroke = data.colours.ink) {
  if (!lines.length) return [];
  const shape = { lines: lines.map((line) => line.map(at)) };
  return [[data.colours.paper, width + 2], [stroke, width]].map(([colour, lineWidth]) => (
    { type: "lines", shape, style: { stroke: colour, lineWidth, fill: "none", lineCap: "round", lineJoin: "round" } }));
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
  if (!strokes.length) return [];
  return [{ type: "lines", shape: { lines: strokes.map((line) => line.map(at)) }, style: { stroke: data.colours.muted, lineWidth: 1.2, fill: "none" } }];
}

// Cells in training.
function arrows(scape, found, at) {
  return (scape.cells.running ?? []).flatMap((count, cell) => {
    if (!count) return [];
    const one = found.boxes[cell];
    const [[left, top], [right, bottom]] = [at([one.left, one.top]), at([one.right, one.bottom])];
    const [cx, cy] = at([one.middle, one.height]);
    const r = Math.min(7, 0.35 * (right - left), 0.35 * (bottom - top));
    const points = [[cx - 0.8 * r, cy - r], [cx + r, cy], [cx - 0.8 * r, cy + r]];
    return [{ type: "polygon", shape: { points }, style: { fill: data.colours.ink, stroke: data.colours.paper, lineWidth: 1 } }];
  });
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

// A cell in words, the tip that shows them with its curve, and moving between cells by keyboard.

const tip = document.getElementById("tip");
let tipCurve = null;
let shownCell = null;

function setting(scape, at) {
  const way = wayOf(scape, state.way);
  const symbol = way === "torch" ? "λ/α" : way === "normalized_decay" ? "λ_norm" : way === "l2" ? "L2 factor λ" : "λ";
  return `α = ${scape.lrTexts[scape.cells.lr[at]]}, ${symbol} = ${scape.cells.texts[way][at]}`;
}

function cellLines(scape, at) {
  const { seeds, diverged, tied, outlier, twin } = scape.cells;
  const running = scape.cells.running?.[at] ?? 0;
  if (!seeds[at]) return [setting(scape, at), running ? "in training now, no result yet" : "waiting, not trained yet"];
  const count = `${seeds[at]} seed${seeds[at] === 1 ? "" : "s"}`;
  const own = splitOf(scape);
  const errors = [own, ...Object.keys(scape.splits).filter((split) => split !== own)].map((split) => {
    const { texts, spreads } = scape.splits[split];
    return `${data.splits[split]}: ${texts[at]}${spreads[at] ? ` ± ${spreads[at]}` : ""}`;
  });
  const lines = [setting(scape, at), ...errors];
  lines.push(scape.splits[own].spreads[at] ? `mean of ${count} ± its standard error` : count);
  if (diverged[at]) lines.push(`${diverged[at]} of ${count} diverged`);
  if (running) lines.push(`${running} more in training now`);
  if (tied[at]) lines.push("as good as the best, up to noise");
  if (twin[at]) lines.push(twin[at]);
  if (outlier[at]) lines.push("stands out from its neighbours by more than noise explains");
  return lines;
}

function showTip(scape, at, left, top) {
  if (shownCell?.[0] !== scape || shownCell[1] !== at) fillTip(scape, at);
  const { width, height } = tip.getBoundingClientRect();
  const beside = left + 18 + width < innerWidth ? left + 18 : Math.max(8, left - 18 - width);
  tip.style.left = `${Math.min(beside, Math.max(8, innerWidth - width - 8))}px`;
  tip.style.top = `${Math.max(8, Math.min(top + 18, innerHeight - height - 8))}px`;
}

function fillTip(scape, at) {
  shownCell = [scape, at];
  const text = document.getElementById("tip-text");
  text.replaceChildren(...cellLines(scape, at).map((line) => element("p", line)));
  const curve = document.getElementById("tip-curve");
  const found = curveSeries(scape, at, splitOf(scape), ink().ink, "");
  curve.hidden = !found;
  tip.hidden = false;
  if (!found) return;
  tipCurve ??= echarts.init(curve, null, { renderer: "svg" });
  tipCurve.resize();
  tipCurve.setOption({ ...curveAxes(scape, { small: true }), series: found }, { notMerge: true, lazyUpdate: true });
}

function hideTip() {
  tip.hidden = true;
  shownCell = null;
}

// The next cell in a direction: along its row, or in the next row at the nearest decay.
function neighbour(scape, at, key) {
  const found = layout(scape, wayOf(scape, state.way));
  const along = (row) => found.boxes.map((_, cell) => cell).filter((cell) => scape.cells.lr[cell] === row)
    .sort((a, b) => found.boxes[a].middle - found.boxes[b].middle);
  const row = scape.cells.lr[at];
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const own = along(row);
    return own[own.indexOf(at) + (key === "ArrowRight" ? 1 : -1)] ?? at;
  }
  const next = along(row + (key === "ArrowUp" ? 1 : -1));
  const away = (cell) => Math.abs(found.boxes[cell].middle - found.boxes[at].middle);
  return next.length ? next.reduce((best, cell) => (away(cell) < away(best) ? cell : best)) : at;
}

function bestCell(scape) {
  const found = layout(scape, scape.ways[0]);
  if (!scape.advice) {
    const { values } = scape.splits[splitOf(scape)];
    return values.reduce((best, value, at) => (value !== null && !(value >= values[best]) ? at : best), 0);
  }
  const place = [x(scape, scape.ways[0], scape.advice.lr[0], scape.advice.decay[0]), Math.log2(scape.advice.lr[0])];
  const away = (one) => (one.middle - place[0]) ** 2 + (one.height - place[1]) ** 2;
  return found.boxes.reduce((best, one, at) => (away(one) < away(found.boxes[best]) ? at : best), 0);
}

// The cell at a place on the screen, if there is one.
function cellAt({ chart, scape }, left, top) {
  const { boxes } = layout(scape, wayOf(scape, state.way));
  const [across, up] = chart.convertFromPixel({ gridIndex: 0 }, [left, top]);
  const dotted = (one) => {
    const [cx, cy] = chart.convertToPixel({ gridIndex: 0 }, [one.middle, one.height]);
    return Math.hypot(cx - left, cy - top) <= DOT + 2;
  };
  const found = boxes.findIndex((one, at) => (isDot(scape, at)
    ? dotted(one)
    : one.left <= across && across <= one.right && one.bottom <= up && up <= one.top));
  return found < 0 ? undefined : found;
}

// Draw a frame around a cell, on top of the picture and without drawing that again.
function outline(panel, at) {
  const { chart, scape } = panel;
  if (panel.frame) chart.getZr().remove(panel.frame);
  panel.frame = null;
  if (at === undefined) return;
  const one = layout(scape, wayOf(scape, state.way)).boxes[at];
  const place = (point) => chart.convertToPixel({ gridIndex: 0 }, point);
  const style = { fill: "none", stroke: ink().ink, lineWidth: 2.5 };
  const [cx, cy] = place([one.middle, one.height]);
  panel.frame = isDot(scape, at)
    ? new echarts.graphic.Circle({ shape: { cx, cy, r: DOT + 1 }, style, silent: true, zlevel: 2, z: 100 })
    : new echarts.graphic.Rect({ shape: rectangle(one, place), style, silent: true, zlevel: 2, z: 100 });
  chart.getZr().add(panel.frame);
}

function listen(panel) {
  const { chart, scape, picture } = panel;
  const screen = chart.getZr();
  const leave = () => {
    outline(panel);
    hideTip();
  };
  screen.on("mousemove", ({ offsetX, offsetY, event }) => {
    const at = panel.dragging ? undefined : cellAt(panel, offsetX, offsetY);
    if (at === undefined) leave();
    else {
      if (shownCell?.[0] !== scape || shownCell[1] !== at) outline(panel, at);
      panel.cell = at;
      showTip(scape, at, event.clientX, event.clientY);
    }
  });
  screen.on("globalout", leave);
  screen.on("click", ({ offsetX, offsetY }) => {
    const at = cellAt(panel, offsetX, offsetY);
    if (at !== undefined) pin(scape, at);
  });
  picture.addEventListener("blur", leave);
  picture.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
    if (!event.key.startsWith("Arrow") && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (event.key.startsWith("Arrow")) {
      panel.cell = panel.cell === undefined ? bestCell(scape) : neighbour(scape, panel.cell, event.key);
      focusCell(panel);
    } else if (panel.cell !== undefined) pin(scape, panel.cell);
  });
}

function focusCell(panel) {
  const { chart, scape, picture, cell } = panel;
  const one = layout(scape, wayOf(scape, state.way)).boxes[cell];
  const [left, top] = chart.convertToPixel({ gridIndex: 0 }, [one.middle, one.height]);
  const around = picture.getBoundingClientRect();
  outline(panel, cell);
  showTip(scape, cell, around.left + left, around.top + top);
  document.getElementById("live").textContent = cellLines(scape, cell).join("; ");
}

// Moving the learning rate: what each rule would make of the best decay, and what that costs.

// The move that a landscape shows: none at the learning rate where its decay was tuned.
function moveOf(scape) {
  return scape.moves.find((move) => move.used === state.rates.get(scape)) ?? null;
}

// Move one landscape to a learning rate, and all others by the same factor, as near as they can.
function moveTo(scape, lr) {
  const tuned = scape.moves[0].tuned;
  for (const one of data.landscapes.filter((other) => other.moves.length)) {
    const wanted = one === scape ? lr : one.moves[0].tuned * (lr / tuned);
    const away = (rate) => Math.abs(Math.log2(rate / wanted));
    state.rates.set(one, ratesOf(one).reduce((best, rate) => (away(rate) < away(best) ? rate : best)));
  }
  for (const panel of panels) panel.due.add("rates");
  refresh();
}

// Draw what the rules do, on top of the picture and without drawing that again.
function overlay(panel) {
  const { chart, scape } = panel;
  const way = wayOf(scape, state.way);
  const shapes = state.marks.rules ? ruled(scape, way, layout(scape, way), placesOf(chart), ink()) : [];
  layer(panel, "rules", shapes, { zlevel: 2, z: 50, clip: false });
}

function ratesOf(scape) {
  return scape.lrs.filter((lr) => lr === scape.moves[0].tuned || scape.moves.some((move) => move.used === lr));
}

function rateControl(panel) {
  const { scape } = panel;
  const rates = ratesOf(scape);
  const input = element("input", "", { type: "range", min: "0", max: String(rates.length - 1), step: "1" });
  input.setAttribute("aria-label", `${scape.title}: move the learning rate`);
  input.addEventListener("input", () => moveTo(scape, rates[Number(input.value)]));
  panel.rate = { input, rates, text: element("span", "") };
  const label = element("label", "Move α ", { class: "rate" });
  label.append(input, panel.rate.text);
  panel.moved = element("div", "", { class: "moved", "aria-live": "polite" });
  return [label, panel.moved];
}

function drawRate(panel) {
  const { scape, rate, moved } = panel;
  const move = moveOf(scape);
  const lr = move ? move.used : scape.moves[0].tuned;
  const text = scape.lrTexts[scape.lrs.indexOf(lr)];
  rate.input.value = String(rate.rates.indexOf(lr));
  rate.input.setAttribute("aria-valuetext", `α = ${text}`);
  rate.text.textContent = `α = ${text}`;
  moved.replaceChildren(...(move ? moveTable(scape, move) : [element("p", `λ was tuned here, by the runs at this α alone: ${scape.moves[0].tunedText}.`)]));
}

function moveTable(scape, move) {
  const factor = move.used / move.tuned;
  const times = factor > 1 ? `multiplied by ${round(factor)}` : `divided by ${round(1 / factor)}`;
  const way = wayOf(scape, state.way);
  const table = element("table", "");
  const unit = scape.metric === null ? "points" : scape.metric;
  const name = way === "torch" ? "weight_decay there" : way === "normalized_decay" ? "λ_norm there" : "λ there";
  const head = element("tr", "");
  head.append(...["rule", name, `cost in ${unit}`].map((text) => element("th", text, { scope: "col" })));
  const top = element("thead", "");
  top.append(head);
  const inside = move.costs.filter((cost, rule) => cost !== null && !move.beyond[rule]);
  const least = Math.min(...inside);
  const body = element("tbody", "");
  data.rules.forEach((rule, at) => {
    const row = element("tr", "");
    const best = !move.beyond[at] && move.costs[at] === least;
    row.append(element("th", rule, { scope: "row" }), element("td", move.texts[way][at]),
      element("td", move.costTexts[at], best ? { class: "best" } : {}));
    body.append(row);
  });
  table.append(top, body);
  return [element("p", `Tuned at ${move.tunedText}, then α ${times}. ${move.judged}`), table];
}

function round(value) {
  return String(Number(value.toPrecision(3)));
}

// Dragging the handle beside a picture. The slider below it does the same by keyboard.
function dragRate(panel) {
  const { chart, scape } = panel;
  const screen = chart.getZr();
  const rateAt = (y) => {
    const wanted = chart.convertFromPixel({ yAxisIndex: 0 }, y);
    return ratesOf(scape).reduce((best, lr) =>
      (Math.abs(Math.log2(lr) - wanted) < Math.abs(Math.log2(best) - wanted) ? lr : best));
  };
  const near = ({ offsetX, offsetY }) => {
    const found = layout(scape, wayOf(scape, state.way));
    const move = moveOf(scape);
    const [left, y] = chart.convertToPixel({ gridIndex: 0 }, [found.right, Math.log2(move ? move.used : scape.moves[0].tuned)]);
    return offsetX > left && Math.abs(offsetY - y) < 16;
  };
  screen.on("mousedown", (event) => {
    panel.dragging = state.marks.rules && near(event);
  });
  screen.on("mousemove", (event) => {
    if (panel.dragging) {
      const lr = rateAt(event.offsetY);
      if (lr !== (state.rates.get(scape) ?? scape.moves[0].tuned)) moveTo(scape, lr);
    }
    screen.setCursorStyle(panel.dragging || (state.marks.rules && near(event)) ? "ns-resize" : "default");
  });
  for (const end of ["mouseup", "globalout"]) screen.on(end, () => { panel.dragging = false; });
}

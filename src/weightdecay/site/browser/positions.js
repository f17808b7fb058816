// Where the cells of a landscape are: log2 of the decay along x, log2 of the learning rate upward.
// A cell reaches halfway to its neighbours in the grid. A decay of 0 has a column of its own.

const GAP = 0.4;
const SAME = 1e-3; // doublings that two ends may differ by: decays are given with six digits
const layouts = new Map();

// The convention on a landscape's decay axis. L2 regularization has no other than its own.
function wayOf(scape, wanted) {
  return scape.ways.includes(wanted) ? wanted : scape.ways[0];
}

// How far a decay moves on the axis when it is stated in another convention.
function shift(scape, way, lr) {
  const root = Math.log2(scape.updates || 1) / 2;
  if (way === "torch") return (scape.way === "normalized_decay" ? -root : 0) - Math.log2(lr);
  if (way === scape.way) return 0;
  return way === "normalized_decay" ? root : -root;
}

function x(scape, way, lr, decay) {
  return Math.log2(decay) + shift(scape, way, lr);
}

// The ends of cells at increasing places: halfway to a neighbour, and never more than half a step.
function ends(places, step) {
  return places.map((place, at) => {
    const below = at > 0 ? place - places[at - 1] : step;
    const above = at < places.length - 1 ? places[at + 1] - place : step;
    return [place - Math.min(below, step) / 2, place + Math.min(above, step) / 2];
  });
}

function gaps(places) {
  return places.slice(1).map((place, at) => place - places[at]);
}

// The step of a grid: most of its gaps are not wider.
function usual(steps) {
  const sorted = steps.filter((step) => step > 0).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(0.75 * (sorted.length - 1))] : 1;
}

function layout(scape, way) {
  const key = `${data.landscapes.indexOf(scape)} ${way}`;
  if (!layouts.has(key)) layouts.set(key, laidOut(scape, way));
  return layouts.get(key);
}

function laidOut(scape, way) {
  const heights = scape.lrs.map(Math.log2);
  const rows = scape.lrs.map(() => []);
  scape.cells.decay.forEach((decay, at) => {
    if (decay > 0) rows[scape.cells.lr[at]].push(at);
  });
  const logs = rows.map((row) => row.map((at) => Math.log2(scape.cells.decay[at])));
  const step = usual(logs.flatMap(gaps));
  const upward = ends(heights, usual(gaps(heights)));
  const boxes = new Array(scape.cells.decay.length);
  rows.forEach((row, lr) => {
    const moved = shift(scape, way, scape.lrs[lr]);
    ends(logs[lr], step).forEach(([left, right], place) => {
      const middle = logs[lr][place] + moved;
      boxes[row[place]] = box(left + moved, right + moved, upward[lr], middle, heights[lr]);
    });
  });
  const known = boxes.filter(Boolean);
  const left = known.length ? Math.min(...known.map((one) => one.left)) : 0;
  const right = known.length ? Math.max(...known.map((one) => one.right)) : 1;
  const zero = left - (GAP + 0.5) * step;
  scape.cells.decay.forEach((decay, at) => {
    const lr = scape.cells.lr[at];
    if (!(decay > 0)) boxes[at] = box(zero - step / 2, zero + step / 2, upward[lr], zero, heights[lr]);
  });
  const without = scape.cells.decay.some((decay) => !(decay > 0));
  return {
    boxes, rows, upward, zero: without ? zero : null, positive: left,
    left: without ? zero - step / 2 : left, right,
    bottom: upward[0][0], top: upward[upward.length - 1][1],
  };
}

function box(left, right, [bottom, top], middle, height) {
  return { left, right, bottom, top, middle, height };
}

// Labels of the decay axis: powers of ten, or 1, 2 and 5 times them if these are few.
function ticks(from, to) {
  const found = [];
  const [low, high] = [from, to].map((end) => end / Math.log2(10));
  const factors = high - low >= 2 ? [1] : [1, 2, 5];
  for (let power = Math.floor(low); power <= Math.ceil(high); power += 1) {
    for (const factor of factors) {
      const place = (power + Math.log10(factor)) * Math.log2(10);
      const text = factors.length > 1 ? String(Number((factor * 10 ** power).toPrecision(1))) : raised(power);
      if (place >= from && place <= to) found.push([place, text]);
    }
  }
  return found;
}

function raised(power) {
  const digits = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  return power === 0 ? "1" : `10${[...String(power)].map((one) => digits[one]).join("")}`;
}

// The border of a set of cells, without the edges between them, as line segments.
function border(found, chosen) {
  const rows = found.rows.map((row) => row.filter((at) => chosen[at]).map((at) => found.boxes[at]));
  const lines = [];
  const merged = rows.map((row) => {
    const spans = [];
    for (const { left, right } of row) {
      const last = spans[spans.length - 1];
      if (last && left - last[1] < SAME) last[1] = right;
      else spans.push([left, right]);
    }
    return spans;
  });
  merged.forEach((spans, at) => {
    const [bottom, top] = found.upward[at];
    for (const end of spans.flat()) lines.push([[end, bottom], [end, top]]);
    const below = at > 0 && Math.abs(found.upward[at - 1][1] - bottom) < SAME ? merged[at - 1] : [];
    const above = at < merged.length - 1 && Math.abs(found.upward[at + 1][0] - top) < SAME ? merged[at + 1] : [];
    for (const [others, height] of [[below, bottom], [above, top]]) {
      for (const [from, to] of outside(spans, others)) lines.push([[from, height], [to, height]]);
    }
  });
  return lines;
}

// The parts of spans that no other span covers.
function outside(spans, others) {
  let left = spans.map((span) => [...span]);
  for (const [from, to] of others) {
    left = left.flatMap(([low, high]) => [[low, Math.min(high, from)], [Math.max(low, to), high]]
      .filter(([start, end]) => end - start > SAME));
  }
  return left;
}

// A handle: something in a picture that can be dragged, and moved with the keyboard, and that says where it is.

import { shape } from "./chart.js";

const STILL = 2; // pixels within which a hand that takes a handle has not moved it
const STEPS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };

export class Handle {
  /**
   * `drag(x, y)` gets pixels of the picture, `step(n)` a number of small steps, `edge(end)` -1 for Home and 1 for End,
   * `rest()` is called when the hand lets go; `line`: it has a line of its own.
   */
  constructor(chart, { name, label, className, drag, step, edge, rest, line = false }) {
    this.chart = chart;
    this.group = shape("g", { class: `handle ${className}`, role: "slider", tabindex: "0", "aria-label": label, "data-handle": name }, chart.handles);
    if (line) this.line = shape("line", {}, this.group);
    if (line) this.reachLine = shape("line", { class: "reach", stroke: "transparent" }, this.group);
    if (line) this.reachLine.setAttribute("stroke-width", "22");
    shape("circle", { class: "ring", r: 14 }, this.group);
    shape("circle", { class: "reach", r: 22 }, this.group);
    shape("circle", { class: "grip", r: 8 }, this.group);
    this.circles = [...this.group.querySelectorAll("circle")];
    this.at = [0, 0];
    this.listen({ drag, step, edge, rest });
  }

  /** While a handle is held its picture keeps its axes, and the handle the distance at which the pointer took it. */
  listen({ drag, step, edge, rest }) {
    let taken = [0, 0];
    let from = null;
    const pixels = (event) => {
      const box = this.chart.svg.getBoundingClientRect();
      const scale = this.chart.width / box.width;
      return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    };
    this.group.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      this.group.focus({ focusVisible: false, preventScroll: true });
      this.group.setPointerCapture(event.pointerId);
      const [x, y] = pixels(event);
      from = [event.clientX, event.clientY];
      taken = [x - this.at[0], this.line ? 0 : y - this.at[1]];
      this.chart.held = true;
    });
    this.group.addEventListener("pointermove", (event) => {
      if (!this.group.hasPointerCapture(event.pointerId)) return;
      if (from && Math.hypot(event.clientX - from[0], event.clientY - from[1]) < STILL) return;
      from = null;
      const [x, y] = pixels(event);
      drag(x - taken[0], y - taken[1]);
    });
    this.group.addEventListener("lostpointercapture", () => {
      this.chart.held = false;
      rest();
    });
    this.group.addEventListener("keydown", (event) => {
      const [steps, end] = [STEPS[event.key], { Home: -1, End: 1 }[event.key]];
      if (!steps && !end) return;
      event.preventDefault();
      if (end) edge(end);
      else step(steps * (event.shiftKey ? 10 : 1));
    });
  }

  /** Where it is, in pixels; with a line, that runs the height of the picture. */
  place(x, y) {
    this.at = [x, y];
    for (const circle of this.circles) {
      circle.setAttribute("cx", x.toFixed(2));
      circle.setAttribute("cy", y.toFixed(2));
    }
    if (!this.line) return;
    for (const line of [this.line, this.reachLine]) {
      const ends = { x1: x, x2: x, y1: this.chart.inner.top, y2: this.chart.inner.bottom };
      for (const [name, value] of Object.entries(ends)) line.setAttribute(name, value.toFixed(2));
    }
  }

  /** What it says to a screen reader. */
  says(now, low, high, words) {
    const values = { "aria-valuenow": now, "aria-valuemin": low, "aria-valuemax": high, "aria-valuetext": words };
    for (const [name, value] of Object.entries(values)) this.group.setAttribute(name, value);
  }
}

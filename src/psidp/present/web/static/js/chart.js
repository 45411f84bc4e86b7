// A picture: an SVG as wide as its place, with axes that are drawn again only when they change.

const NS = "http://www.w3.org/2000/svg";
const WIDE = 6.9; // pixels that a letter of a note takes, at most and on average

/** An SVG element with its attributes, inside its parent. */
export function shape(tag, attributes, parent) {
  const element = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (parent) parent.append(element);
  return element;
}

/** A polyline through points in pixels. */
export function path(points) {
  let d = "";
  for (const [x, y] of points) d += `${d ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`;
  return d;
}

function text(parent, x, y, words, attributes = {}) {
  shape("text", { x, y, ...attributes }, parent).textContent = words;
}

export class Chart {
  /** `layout`: label for screen readers, titles of the axes, height from width, margins. */
  constructor(host, layout) {
    this.layout = { margin: { left: 50, right: 12, top: 12, bottom: 40 }, height: (w) => 0.62 * w, ...layout };
    this.svg = shape("svg", { role: "group", "aria-label": layout.label }, host);
    this.clip = `clip-${host.id}`;
    this.clipRect = shape("rect", {}, shape("clipPath", { id: this.clip }, shape("defs", {}, this.svg)));
    this.axes = shape("g", { "aria-hidden": "true" }, this.svg);
    this.body = shape("g", { "aria-hidden": "true", "clip-path": `url(#${this.clip})` }, this.svg);
    this.notes = shape("g", { "aria-hidden": "true" }, this.svg);
    this.handles = shape("g", {}, this.svg);
    this.host = host;
    this.key = "";
    this.held = false;
    this.paths = new Map();
    this.keys = new Map();
    this.measure();
  }

  /** Take the width of the place; the caller renders again. */
  measure() {
    this.width = Math.max(240, this.host.clientWidth);
    this.height = Math.round(this.layout.height(this.width));
    this.key = "";
  }

  /** Set both scales; axes, grid and size follow where something changed. While a handle is held they stay. */
  frame(across, upward) {
    const [x, y] = this.held && this.xScale ? [this.xScale, this.yScale] : [across, upward];
    this.xScale = x;
    this.yScale = y;
    const { margin } = this.layout;
    this.inner = { left: margin.left, right: this.width - margin.right, top: margin.top, bottom: this.height - margin.bottom };
    const key = `${x.key}|${y?.key}|${this.width}`;
    if (key === this.key) return;
    this.key = key;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    const { left, right, top, bottom } = this.inner;
    for (const [name, value] of Object.entries({ x: left, y: top - 2, width: right - left, height: bottom - top + 4 })) {
      this.clipRect.setAttribute(name, value);
    }
    this.drawAxes();
  }

  drawAxes() {
    const { left, right, top, bottom } = this.inner;
    this.axes.replaceChildren();
    for (const { value, text: words } of this.xScale.ticks) {
      const x = this.x(value);
      shape("line", { class: "axis", x1: x, x2: x, y1: top, y2: bottom }, this.axes);
      text(this.axes, x, bottom + 16, words, { "text-anchor": "middle" });
    }
    for (const { value, text: words } of this.yScale?.ticks ?? []) {
      const y = this.y(value);
      shape("line", { class: "axis", x1: left, x2: right, y1: y, y2: y }, this.axes);
      text(this.axes, left - 6, y + 4, words, { "text-anchor": "end" });
    }
    const middle = (left + right) / 2;
    const title = this.fitted(this.layout.x ?? "", this.layout.short ?? this.layout.x ?? "", this.width);
    text(this.axes, middle, bottom + 34, title, { "text-anchor": "middle", class: "axis-title" });
    if (!this.layout.y) return;
    const turned = { "text-anchor": "middle", class: "axis-title", transform: `translate(12 ${(top + bottom) / 2}) rotate(-90)` };
    text(this.axes, 0, 0, this.layout.y, turned);
  }

  /** Quantity to pixel. */
  x(value) {
    return this.inner.left + this.xScale.to(value) * (this.inner.right - this.inner.left);
  }

  y(value) {
    return this.inner.bottom - this.yScale.to(value) * (this.inner.bottom - this.inner.top);
  }

  /** Pixel to quantity, kept inside the axes. */
  fromX(pixel) {
    return this.xScale.from(clip01((pixel - this.inner.left) / (this.inner.right - this.inner.left)));
  }

  fromY(pixel) {
    return this.yScale.from(clip01((this.inner.bottom - pixel) / (this.inner.bottom - this.inner.top)));
  }

  /** The named path; an empty list of points hides it. */
  line(name, className, points, close = false) {
    this.draw(name, className, path(points) + (close && points.length ? "Z" : ""));
  }

  /** The named path through points that are made anew only when `key`, or the axes, changed. */
  kept(name, className, key, points) {
    const whole = `${key}|${this.key}`;
    if (this.keys.get(name) === whole) return;
    this.keys.set(name, whole);
    this.line(name, className, points());
  }

  /** The named path as SVG writes it; unchanged ones cost nothing. */
  draw(name, className, d) {
    let element = this.paths.get(name);
    if (!element) {
      element = shape("path", { class: className, "data-name": name }, this.body);
      this.paths.set(name, element);
    }
    if (element.drawn === d) return;
    element.drawn = d;
    element.setAttribute("d", d);
  }

  /** `words` where they fit into so many pixels, else the `short` ones. */
  fitted(words, short, room) {
    return WIDE * words.length <= room ? words : short;
  }

  /** The named note at a place in pixels, moved where it would leave the picture. */
  note(name, className, at, y, words, anchor = "start") {
    const wide = WIDE * words.length;
    const before = { start: 0, middle: 0.5, end: 1 }[anchor] * wide;
    const x = Math.min(Math.max(at, before + 2), Math.max(this.width - wide + before - 2, before + 2));
    let element = this.paths.get(name);
    if (!element) {
      element = shape("text", { class: className }, this.notes);
      this.paths.set(name, element);
    }
    element.setAttribute("x", x.toFixed(1));
    element.setAttribute("y", y.toFixed(1));
    element.setAttribute("text-anchor", anchor);
    if (element.textContent !== words) element.textContent = words;
  }
}

function clip01(t) {
  return Math.min(Math.max(t, 0), 1);
}

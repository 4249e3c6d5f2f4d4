'use strict';
// One graph: uPlot with Fathom's axes, legend, tip, zoom and keys.
const charts = (() => {
  const HEIGHT = { screen: 280, narrow: 210, paper: 180 };
  /** A narrower graph, on a phone, is lower too. */
  const NARROW = 400;
  /** Width of a graph on paper, in px: A4 and Letter with their margins. */
  const PAPER = 690;
  const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
  const alive = new Set();
  let onPaper = false;

  /** The colour of this name in the style sheet, as the theme in force has it. */
  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  /** 1, 2 and 5 times each power of ten between the two. */
  function decades(min, max) {
    const found = [];
    for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power++) {
      for (const digit of [1, 2, 5]) {
        const value = digit * 10 ** power;
        if (value >= min * 0.999 && value <= max * 1.001) found.push(value);
      }
    }
    return found;
  }

  /** At most `most` of the values: 1, 10, 100 before 2 and 5. */
  function thinned(values, most) {
    if (values.length <= most) return values;
    const powers = values.filter((value) => Math.abs(Math.log10(value) % 1) < 1e-9);
    const kept = powers.length > 1 ? powers : values;
    const step = Math.ceil(kept.length / Math.max(1, most));
    return kept.filter((_, i) => i % step === 0);
  }

  /** Round distances between the marks of an axis: of bytes powers of two. */
  function increments(binary) {
    const found = [];
    if (binary) {
      for (let power = 0; power < 60; power++) found.push(2 ** power);
    } else {
      for (let power = -3; power < 16; power++) {
        for (const digit of [1, 2, 2.5, 5]) found.push(digit * 10 ** power);
      }
    }
    return found;
  }

  /** The highest that is drawn: error bars end above their points. */
  function highest(u, lines, max) {
    lines.forEach((line, l) => {
      if (!line.errors || !u.series[l + 1].show) return;
      u.data[l + 1].forEach((y, i) => {
        if (y !== null && line.errors[i] !== null) max = Math.max(max, y + line.errors[i]);
      });
    });
    return max;
  }

  function yScale(axis, lines) {
    if (axis.log) {
      return {
        distr: 3,
        range: (u, min, max) => (min > 0 ? [min / 1.4, highest(u, lines, max) * 1.4] : [1, 10]),
      };
    }
    // The names of bands stand above the highest that there can be.
    if (axis.most) return { range: () => [0, axis.most * 1.12] };
    return { range: (u, min, max) => [0, max > 0 ? highest(u, lines, max) * 1.08 : 1] };
  }

  function yAxis(axis) {
    const made = {
      stroke: color('faint'),
      grid: { stroke: color('grid'), width: 1 },
      ticks: { show: false },
      font: '12px system-ui, sans-serif',
      size: (u, values) => 14 + 7 * Math.max(4, ...(values || []).map((text) => text.length)),
      values: (u, splits) => splits.map((value) => (value === null ? '' : axis.format(value))),
      space: 30,
    };
    if (axis.log) {
      made.splits = (u, _, min, max) => thinned(decades(min, max), (u.bbox.height / devicePixelRatio) / 20);
      made.filter = (u, splits) => splits;
    } else {
      made.incrs = increments(axis.binary);
    }
    return made;
  }

  function xAxis(axis) {
    const made = {
      label: axis.label,
      size: 28,
      labelSize: 20,
      labelGap: 0,
      labelFont: '12px system-ui, sans-serif',
      stroke: color('faint'),
      grid: { stroke: color('grid'), width: 1 },
      ticks: { show: false },
      font: '12px system-ui, sans-serif',
      values: (u, splits) => splits.map((value) => axis.format(value)),
      space: 56,
      incrs: axis.incrs || increments(false),
    };
    if (axis.places) made.splits = (u, _, min, max) => spread(u, axis.places, min, max);
    else if (axis.log) made.splits = (u, _, min, max) => thinned(decades(min, max), u.width / 70);
    if (axis.log) made.filter = (u, splits) => splits;
    return made;
  }

  /** Of the places that are measured those that have room for their label. */
  function spread(u, places, min, max) {
    const seen = places.filter((place) => place >= min - 1e-9 && place <= max + 1e-9);
    const step = Math.max(1, Math.ceil((seen.length * 44) / Math.max(1, u.width - 90)));
    return seen.filter((_, i) => i % step === 0);
  }

  /** A vertical line with caps from `low` to `high`. */
  function whisker(u, x, low, high) {
    const ratio = devicePixelRatio;
    const [px, top, bottom] = [u.valToPos(x, 'x', true), u.valToPos(high, 'y', true), u.valToPos(low, 'y', true)];
    u.ctx.moveTo(px, top);
    u.ctx.lineTo(px, bottom);
    for (const y of [top, bottom]) {
      u.ctx.moveTo(px - 4 * ratio, y);
      u.ctx.lineTo(px + 4 * ratio, y);
    }
  }

  /** The 95 % intervals of a line's points. */
  function errorBars(u, line, index) {
    if (!line.errors || !u.series[index].show) return;
    u.ctx.save();
    clip(u);
    u.ctx.strokeStyle = line.stroke;
    u.ctx.lineWidth = 1.5 * devicePixelRatio;
    u.ctx.beginPath();
    line.errors.forEach((error, i) => {
      const [x, y] = [u.data[0][i], u.data[index][i]];
      if (error === null || y === null || y === undefined) return;
      const least = u.scales.y.distr === 3 ? u.scales.y.min : 0;
      whisker(u, x, Math.max(y - error, least), y + error);
    });
    u.ctx.stroke();
    u.ctx.restore();
  }

  function clip(u) {
    const { left, top, width, height } = u.bbox;
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
  }

  /** Shaded times with their names, behind everything. */
  function bands(u, spec) {
    u.ctx.save();
    clip(u);
    const ratio = devicePixelRatio;
    const { left, top, width, height } = u.bbox;
    u.ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    u.ctx.textBaseline = 'top';
    for (const band of spec.bands || []) {
      const [from, to] = [band.from, band.to].map((x) => u.valToPos(x, 'x', true));
      u.ctx.fillStyle = color('panel');
      u.ctx.fillRect(from, top, to - from, height);
      u.ctx.fillStyle = color('line');
      for (const edge of [from, to]) u.ctx.fillRect(edge - ratio / 2, top, ratio, height);
      const seen = [Math.max(from, left), Math.min(to, left + width)];
      u.ctx.fillStyle = color('faint');
      if (u.ctx.measureText(band.name).width + 10 * ratio <= seen[1] - seen[0]) u.ctx.fillText(band.name, seen[0] + 5 * ratio, top + 4 * ratio);
    }
    u.ctx.restore();
  }

  const SHAPES = {
    bw: (ctx, x, y, r) => {
      ctx.moveTo(x, y - r);
      ctx.lineTo(x + r, y + r * 0.8);
      ctx.lineTo(x - r, y + r * 0.8);
      ctx.closePath();
    },
    iops: (ctx, x, y, r) => ctx.rect(x - r * 0.8, y - r * 0.8, r * 1.6, r * 1.6),
    clat: (ctx, x, y, r) => ctx.arc(x, y, r, 0, 2 * Math.PI),
  };
  const SIZES = { bw: 11, iops: 9, clat: 7 };

  /** The best points, and crosses on the x axis where a point failed. */
  function marks(u, spec) {
    u.ctx.save();
    const ratio = devicePixelRatio;
    u.ctx.lineWidth = 2 * ratio;
    for (const mark of spec.marks || []) {
      const y = u.data[mark.line + 1][mark.at];
      if (!u.series[mark.line + 1].show || y === null || y === undefined) continue;
      u.ctx.strokeStyle = color('ink');
      u.ctx.beginPath();
      SHAPES[mark.kind](u.ctx, u.valToPos(u.data[0][mark.at], 'x', true), u.valToPos(y, 'y', true), SIZES[mark.kind] * ratio);
      u.ctx.stroke();
    }
    u.ctx.strokeStyle = color('bad');
    const bottom = u.bbox.top + u.bbox.height - 8 * ratio;
    for (const x of spec.failed || []) {
      const px = u.valToPos(x, 'x', true);
      if (px < u.bbox.left - 1 || px > u.bbox.left + u.bbox.width + 1) continue;
      const r = 5 * ratio;
      u.ctx.beginPath();
      u.ctx.moveTo(px - r, bottom - r);
      u.ctx.lineTo(px + r, bottom + r);
      u.ctx.moveTo(px + r, bottom - r);
      u.ctx.lineTo(px - r, bottom + r);
      u.ctx.stroke();
    }
    u.ctx.restore();
  }

  /** Curves through points in their own order: IOPS can fall while latency rises. */
  function curves(u, spec) {
    u.ctx.save();
    clip(u);
    spec.lines.forEach((line, l) => {
      if (!u.series[l + 1].show) return;
      const at = (point) => [u.valToPos(point.x, 'x', true), u.valToPos(point.y, 'y', true)];
      u.ctx.strokeStyle = u.ctx.fillStyle = line.stroke;
      u.ctx.lineWidth = 2 * devicePixelRatio;
      u.ctx.setLineDash((line.dash || []).map((length) => length * devicePixelRatio));
      u.ctx.beginPath();
      line.points.forEach((point, i) => u.ctx[i ? 'lineTo' : 'moveTo'](...at(point)));
      u.ctx.stroke();
      u.ctx.setLineDash([]);
      for (const point of line.points) {
        u.ctx.beginPath();
        u.ctx.arc(...at(point), 3.5 * devicePixelRatio, 0, 2 * Math.PI);
        u.ctx.fill();
      }
    });
    u.ctx.restore();
  }

  /** The point of a curve that is next to the pointer, within 40 px. */
  function nearest(u, spec) {
    let best = null;
    let least = 40 ** 2;
    spec.lines.forEach((line, l) => {
      if (!u.series[l + 1].show) return;
      for (const point of line.points) {
        const [x, y] = [u.valToPos(point.x, 'x'), u.valToPos(point.y, 'y')];
        const far = (x - u.cursor.left) ** 2 + (y - u.cursor.top) ** 2;
        if (far < least) {
          least = far;
          best = { line, point, x, y };
        }
      }
    });
    return best;
  }

  /** What the tip says: a title and lines of [stroke, name, value]. */
  function told(u, spec) {
    if (u.cursor.left < 0) return null;
    if (spec.curves) {
      const near = nearest(u, spec);
      return near && { title: near.line.name, rows: near.point.told.map((row) => [near.line.stroke, ...row]) };
    }
    const i = u.cursor.idx;
    if (i === null || i === undefined) return null;
    const rows = [];
    spec.lines.forEach((line, l) => {
      const value = u.data[l + 1][i];
      if (!u.series[l + 1].show || value === null || value === undefined) return;
      const error = line.errors && line.errors[i];
      rows.push([line.stroke, line.name, spec.y.format(value) + (error ? ` ± ${spec.y.format(error)}` : '')]);
    });
    return { title: spec.x.tell(u.data[0][i]), rows };
  }

  function showTip(u, tip, spec) {
    const text = told(u, spec);
    tip.hidden = !text;
    if (!text) return;
    tip.replaceChildren(element('strong', '', text.title));
    for (const [stroke, name, value] of text.rows) {
      const row = element('div');
      const swatch = element('i', 'swatch');
      swatch.style.background = stroke;
      row.append(swatch, element('span', '', name), element('b', '', value));
      tip.append(row);
    }
    const left = u.over.offsetLeft + u.cursor.left;
    const right = u.cursor.left > u.over.clientWidth / 2;
    const beside = right ? left - tip.offsetWidth - 14 : left + 14;
    const most = u.root.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.max(0, Math.min(beside, most))}px`;
    tip.style.top = `${u.over.offsetTop + 6}px`;
  }

  function legend(chart) {
    const box = element('div', 'legend');
    chart.spec.lines.forEach((line, l) => {
      const button = element('button');
      button.type = 'button';
      const swatch = element('i', 'swatch');
      if (line.dash && line.dash.length) swatch.classList.add('dashed');
      swatch.style.color = line.stroke;
      button.append(swatch, element('span', '', line.name));
      button.setAttribute('aria-pressed', String(!line.hidden));
      button.addEventListener('click', () => {
        line.hidden = !line.hidden;
        button.setAttribute('aria-pressed', String(!line.hidden));
        chart.plot.setSeries(l + 1, { show: !line.hidden });
        if (chart.spec.curves) chart.fit();
      });
      box.append(button);
    });
    const reset = element('button', 'reset', 'Whole range');
    reset.type = 'button';
    reset.hidden = true;
    reset.addEventListener('click', () => chart.zoom(null));
    chart.resetButton = reset;
    box.append(reset);
    return box;
  }

  /** The keys of a graph that has the focus. */
  function keys(chart, event) {
    const { plot } = chart;
    const { min, max } = plot.scales.x;
    const middle = plot.cursor.left > 0 ? plot.posToVal(plot.cursor.left, 'x') : (min + max) / 2;
    const around = (times) => chart.zoom([middle - (middle - min) * times, middle + (max - middle) * times]);
    const step = (by) => {
      const last = plot.data[0].length - 1;
      const now = plot.cursor.idx === null || plot.cursor.left < 0 ? (by > 0 ? -1 : last + 1) : plot.cursor.idx;
      const next = Math.max(0, Math.min(last, now + by));
      plot.setCursor({ left: plot.valToPos(plot.data[0][next], 'x'), top: plot.over.clientHeight / 2 });
    };
    const known = {
      ArrowLeft: () => step(-1),
      ArrowRight: () => step(1),
      '+': () => around(0.5),
      '=': () => around(0.5),
      '-': () => around(2),
      0: () => chart.zoom(null),
      Escape: () => chart.zoom(null),
    };
    const action = known[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  class Chart {
    /**
     * @param host the element that takes the graph
     * @param spec {label, x: {label, min, max, format, tell, places, log}, y: {format, log, binary},
     *   lines: [{name, color, dash, hidden, errors, dots, points}], source(min, max, pixels): [xs, …ys],
     *   marks, failed, curves, bands: [{name, from, to}]}
     */
    constructor(host, spec) {
      this.host = host;
      this.spec = spec;
      this.range = [spec.x.min, spec.x.max];
      if (spec.curves) this.fit();
      for (const line of spec.lines) line.stroke = color(line.color);
      this.box = element('div', 'graph');
      this.box.tabIndex = 0;
      this.box.setAttribute('role', 'group');
      this.box.setAttribute('aria-label', `${spec.label}. Arrow keys read values, + and - zoom, 0 shows all.`);
      this.box.addEventListener('keydown', (event) => keys(this, event));
      this.tip = element('div', 'tip');
      this.tip.hidden = true;
      host.replaceChildren(this.box);
      const width = this.width();
      const data = spec.source(...this.range, width);
      this.plot = new uPlot(this.options(width), data, this.box);
      this.plot.root.append(this.tip);
      host.append(legend(this));
      this.watch = new ResizeObserver(() => this.resize());
      this.watch.observe(host);
      alive.add(this);
    }

    width() {
      return onPaper ? PAPER : Math.max(260, this.host.clientWidth);
    }

    height() {
      if (onPaper) return HEIGHT.paper;
      return this.host.clientWidth < NARROW ? HEIGHT.narrow : HEIGHT.screen;
    }

    options(width) {
      const { spec } = this;
      const drawn = (u) => {
        if (spec.curves) curves(u, spec);
        marks(u, spec);
      };
      return {
        width,
        height: this.height(),
        legend: { show: false },
        padding: [12, 14, 0, 0],
        cursor: {
          y: Boolean(spec.curves),
          drag: { x: true, y: false, setScale: false },
          points: { show: !spec.curves, size: 8 },
          bind: { dblclick: () => () => this.zoom(null) },
        },
        scales: {
          x: { time: false, distr: spec.x.log ? 3 : 1, range: () => this.range },
          y: yScale(spec.y, spec.lines),
        },
        axes: [xAxis(spec.x), yAxis(spec.y)],
        series: [{}, ...spec.lines.map((line) => this.series(line))],
        hooks: {
          drawClear: [(u) => bands(u, spec)],
          setSelect: [(u) => this.selected(u)],
          setCursor: [(u) => showTip(u, this.tip, spec)],
          drawSeries: [(u, index) => errorBars(u, spec.lines[index - 1], index)],
          draw: [drawn],
        },
      };
    }

    series(line) {
      const made = {
        label: line.name,
        stroke: line.stroke,
        width: line.thin ? 1 : 2,
        dash: line.dash,
        show: !line.hidden,
        spanGaps: Boolean(line.dots),
        points: { show: Boolean(line.dots), size: 7, fill: line.stroke },
      };
      if (this.spec.curves) {
        made.paths = () => null;
        made.points = { show: false };
      }
      return made;
    }

    selected(u) {
      const { left, width } = u.select;
      if (width < 3) return;
      this.zoom([u.posToVal(left, 'x'), u.posToVal(left + width, 'x')]);
      u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    }

    /** The x axis of curves spans those that are shown. */
    fit() {
      const shown = this.spec.lines.filter((line) => !line.hidden).flatMap((line) => line.points.map((point) => point.x));
      if (!shown.length) return;
      this.spec.x.min = shown.reduce((a, b) => Math.min(a, b)) / 1.15;
      this.spec.x.max = shown.reduce((a, b) => Math.max(a, b)) * 1.15;
      this.range = [this.spec.x.min, this.spec.x.max];
      if (this.plot) this.zoom(null);
    }

    /** Shows [from, to] of the x axis, or all. */
    zoom(to) {
      const { min, max, log } = this.spec.x;
      const [from, until] = to ? [Math.max(min, to[0]), Math.min(max, to[1])] : [min, max];
      if (!(until > from) || (log && from <= 0)) return;
      this.range = [from, until];
      this.resetButton.hidden = from <= min && until >= max;
      this.refill();
    }

    /** What of it somebody chose: where it is zoomed to, and the lines that are hidden. */
    view() {
      const hidden = this.spec.lines.filter((line) => line.hidden).map((line) => line.name);
      return { range: this.resetButton.hidden ? null : this.range, hidden };
    }

    /** As [`view`] gave it, of this graph or of one with less in it. */
    show({ range, hidden }) {
      const buttons = this.host.querySelectorAll('.legend button[aria-pressed]');
      this.spec.lines.forEach((line, l) => {
        if (Boolean(line.hidden) !== hidden.includes(line.name)) buttons[l].click();
      });
      if (range) this.zoom(range);
    }

    refill() {
      const data = this.spec.source(...this.range, this.plot.width);
      this.plot.batch(() => {
        this.plot.setData(data, false);
        this.plot.setScale('x', { min: this.range[0], max: this.range[1] });
      });
    }

    resize() {
      const width = this.width();
      if (width === this.plot.width) return;
      this.plot.setSize({ width, height: this.height() });
      this.refill();
    }

    destroy() {
      alive.delete(this);
      this.watch.disconnect();
      this.plot.destroy();
      this.host.replaceChildren();
    }
  }

  /** Lays all graphs out for paper, or for the screen again. */
  function paper(on) {
    onPaper = on;
    document.documentElement.classList.toggle('paper', on);
  }

  return { Chart, DASHES, element, paper, alive };
})();

const curves = JSON.parse(document.getElementById('curves').textContent);
const latency = JSON.parse(document.getElementById('latency').textContent);
const full = curves.span;
let view = full.slice();
const timed = [];

function unpack(columns) {
  const out = {};
  for (const [name, text] of Object.entries(columns)) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    out[name] = new Float32Array(bytes.buffer);
  }
  return out;
}

function element(parent, tag, text) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

// The last index whose time is not after t.
function indexAt(times, t) {
  let low = 0, high = times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (times[middle] <= t) low = middle; else high = middle - 1;
  }
  return low;
}

function extent(series, least) {
  let low = Infinity, high = -Infinity;
  for (const { t, y } of series) {
    for (let i = 0; i < y.length; i++) {
      if (t[i] < view[0] || t[i] > view[1] || !Number.isFinite(y[i])) continue;
      low = Math.min(low, y[i]);
      high = Math.max(high, y[i]);
    }
  }
  if (low > high) [low, high] = [0, 1];
  const grow = Math.max(0, least - (high - low)) / 2 + (high - low) * 0.06;
  return [low - grow, high + grow];
}

class TimePlot {
  // options: title, unit, series(): [{name, t, y, color, thin, dashed}], least, missed, floor0
  constructor(id, options) {
    this.host = document.getElementById(id);
    this.host.classList.add('timed');
    this.options = options;
    this.head = element(this.host, 'div');
    this.head.className = 'plot-title';
    this.svg = add(this.host, 'svg', { role: 'img' });
    timed.push(this);
    this.listen();
  }

  draw() {
    const { options, svg } = this;
    const width = this.host.clientWidth, height = options.height || 196;
    const box = { left: 46, right: width - 6, top: 28, bottom: height - 22 };
    this.box = box;
    this.series = options.series();
    const [low, high] = extent(this.series, options.least);
    const bottom = options.floor0 ? 0 : low;
    this.x = (t) => box.left + ((t - view[0]) / (view[1] - view[0])) * (box.right - box.left);
    this.y = (v) => box.bottom - ((v - bottom) / (high - bottom)) * (box.bottom - box.top);
    svg.replaceChildren();
    svg.setAttribute('height', height);
    svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    svg.setAttribute('aria-label', `${options.title}, over time`);
    this.drawAxes(bottom, high, width);
    this.drawModes();
    for (const one of this.series) this.drawCurve(one);
    for (const t of options.missed || []) {
      if (t < view[0] || t > view[1]) continue;
      add(svg, 'line', { class: 'missed', x1: this.x(t), x2: this.x(t), y1: box.top, y2: box.bottom });
    }
    this.pointer = add(svg, 'g', {});
    this.drawHead(null);
  }

  drawAxes(low, high, width) {
    const { svg, box } = this;
    for (const [v, text] of ticks(low, high, 4)) {
      add(svg, 'line', { class: 'grid', x1: box.left, x2: box.right, y1: this.y(v), y2: this.y(v) });
      add(svg, 'text', { x: box.left - 6, y: this.y(v) + 4, 'text-anchor': 'end' }, text);
    }
    const columns = ticks(view[0], view[1], width < 500 ? 4 : 8);
    for (const [t, text] of columns) {
      const label = `${text}${t === columns.at(-1)[0] ? ' s' : ''}`;
      add(svg, 'text', { x: this.x(t), y: box.bottom + 16, 'text-anchor': 'middle' }, label);
    }
  }

  // The modes as a ribbon above; where one begins, a line through the plot.
  drawModes() {
    const { svg, box } = this;
    for (const { mode, begin, end } of curves.modes) {
      const from = Math.max(this.x(begin), box.left), to = Math.min(this.x(end), box.right);
      if (to <= box.left || from >= box.right) continue;
      const group = add(svg, 'g', { class: mode });
      add(group, 'rect', { x: from, y: box.top - 7, width: Math.max(to - from, 1.5), height: 4, fill: 'currentColor', rx: 1 });
      if (from > box.left) {
        add(group, 'line', { class: 'trip', stroke: 'currentColor', x1: from, x2: from, y1: box.top - 7, y2: box.bottom });
      }
      if (to - from > mode.length * 8) {
        const label = add(svg, 'text', { x: from + 1, y: box.top - 11 }, mode);
        label.setAttribute('style', 'font-size:11px;font-weight:600');
      }
    }
  }

  drawCurve({ t, y, color, thin, dashed }) {
    const begin = Math.max(indexAt(t, view[0]) - 1, 0), end = Math.min(indexAt(t, view[1]) + 2, t.length);
    const parts = [];
    let pen = 'M';
    for (let i = begin; i < end; i++) {
      if (!Number.isFinite(y[i])) { pen = 'M'; continue; }
      parts.push(`${pen}${this.x(t[i]).toFixed(1)} ${this.y(y[i]).toFixed(1)}`);
      pen = 'L';
    }
    const clip = `clip-${this.host.id}`;
    if (!this.svg.querySelector('clipPath')) {
      const { left, right, top, bottom } = this.box;
      const shape = add(this.svg, 'clipPath', { id: clip });
      add(shape, 'rect', { x: left, y: top - 3, width: right - left, height: bottom - top + 6 });
    }
    const style = `curve${thin ? ' thin' : ''}${dashed ? ' dashed' : ''}`;
    add(this.svg, 'path', { class: style, d: parts.join(''), stroke: `var(${color})`, 'clip-path': `url(#${clip})` });
  }

  drawHead(at) {
    this.head.replaceChildren();
    element(this.head, 'b', `${this.options.title}, ${this.options.unit}`);
    if (at !== null) element(this.head, 'span', `at ${at.toFixed(2)} s`);
    for (const { name, t, y, color } of this.series) {
      if (!name) continue;
      const label = element(this.head, 'span');
      element(label, 'i').setAttribute('style', `color:var(${color})`);
      label.append(name);
      if (at !== null && t.length) {
        const value = y[indexAt(t, at)];
        label.append(` ${Number.isFinite(value) ? value.toFixed(2).replace('-', '−') : '–'}`);
      }
    }
    if (view[0] !== full[0] || view[1] !== full[1]) {
      const button = element(this.head, 'button', 'whole run');
      button.onclick = () => look(full[0], full[1]);
    }
  }

  point(at, begin) {
    const { box } = this;
    this.pointer.replaceChildren();
    if (at !== null) {
      add(this.pointer, 'line', { class: 'cursor', x1: this.x(at), x2: this.x(at), y1: box.top, y2: box.bottom });
      if (begin !== null) {
        const [from, to] = [this.x(begin), this.x(at)].sort((a, b) => a - b);
        add(this.pointer, 'rect', { class: 'selection', x: from, y: box.top, width: to - from, height: box.bottom - box.top });
      }
    }
    this.drawHead(at);
  }

  listen() {
    let begin = null;
    const time = (event) => {
      const { left, right } = this.box;
      const share = (event.clientX - this.svg.getBoundingClientRect().left - left) / (right - left);
      return view[0] + Math.min(Math.max(share, 0), 1) * (view[1] - view[0]);
    };
    const everywhere = (at) => { for (const plot of timed) plot.point(at, begin); };
    this.svg.addEventListener('pointerdown', (event) => {
      begin = time(event);
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener('pointermove', (event) => everywhere(time(event)));
    this.svg.addEventListener('pointerup', (event) => {
      const ends = [begin ?? time(event), time(event)].sort((a, b) => a - b);
      begin = null;
      const wide = (ends[1] - ends[0]) / (view[1] - view[0]) > 0.02;
      if (wide) look(ends[0], Math.max(ends[1], ends[0] + 0.1)); else everywhere(ends[1]);
    });
    this.svg.addEventListener('pointercancel', () => { begin = null; everywhere(null); });
    this.svg.addEventListener('pointerleave', () => { if (begin === null) everywhere(null); });
    this.svg.addEventListener('dblclick', () => look(full[0], full[1]));
  }
}

function look(begin, end) {
  view = [begin, end];
  for (const plot of timed) plot.draw();
}

// The stages as hills over one logarithmic axis of milliseconds.
function drawLatency() {
  const host = document.getElementById('latency-plot');
  host.replaceChildren();
  const rows = Object.keys(latency);
  const width = host.clientWidth, rowHeight = 58, top = 18;
  const height = top + rows.length * rowHeight + 26;
  const svg = add(host, 'svg', { height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Duration of each stage' });
  const known = rows.map((name) => curves.latency[name]).filter(Boolean);
  const low = Math.min(-2, ...known.map((h) => h.from));
  const high = Math.max(Math.log10(40), ...known.map((h) => h.from + h.share.length / h.per_decade));
  const left = 4, right = width - 10, bottom = height - 24;
  const x = (exponent) => left + ((exponent - low) / (high - low)) * (right - left);
  for (let power = low; power <= high; power++) {
    add(svg, 'line', { class: 'grid', x1: x(power), x2: x(power), y1: top, y2: bottom });
    const anchor = power === low ? 'start' : 'middle';
    const unit = power + 1 > high ? ' ms' : '';
    add(svg, 'text', { x: x(power), y: bottom + 16, 'text-anchor': anchor }, `${10 ** power}${unit}`);
  }
  const deadline = x(Math.log10(20));
  add(svg, 'line', { class: 'missed', x1: deadline, x2: deadline, y1: top, y2: bottom, 'stroke-dasharray': '4 3' });
  add(svg, 'text', { x: deadline, y: top - 5, 'text-anchor': 'middle' }, '20 ms');
  rows.forEach((name, row) => drawHill(svg, name, top + (row + 1) * rowHeight, rowHeight - 22, x, left, right));
}

function drawHill(svg, name, base, tall, x, left, right) {
  const hill = curves.latency[name], figures = latency[name];
  add(svg, 'line', { class: 'grid', x1: left, x2: right, y1: base, y2: base });
  const label = add(svg, 'text', { class: 'label', x: left, y: base - tall - 6 }, name);
  if (!hill || !figures) {
    label.textContent += ': not recorded';
    return;
  }
  const most = Math.max(...hill.share);
  const at = (bin) => x(hill.from + bin / hill.per_decade).toFixed(1);
  let path = `M${at(0)} ${base}`;
  hill.share.forEach((share, bin) => {
    const y = (base - (share / most) * tall).toFixed(1);
    path += `L${at(bin)} ${y}L${at(bin + 1)} ${y}`;
  });
  path += `L${at(hill.share.length)} ${base}Z`;
  add(svg, 'path', { d: path, fill: 'var(--faint)' });
  for (const [p, color] of [['p50', '--measured'], ['p95', '--measured'], ['p99', '--asked']]) {
    const exponent = Math.log10(Math.max(figures[p], 1e-2));
    add(svg, 'line', { x1: x(exponent), x2: x(exponent), y1: base - tall, y2: base, stroke: `var(${color})`, 'stroke-width': p === 'p95' ? 1 : 2 });
  }
  const said = ['p50', 'p95', 'p99'].map((p) => `${p} ${figures[p].toFixed(2)}`).join('\u2002');
  add(svg, 'text', { x: left + 130, y: base - tall - 6 }, `${said} ms`);
}

function setUp() {
  if (curves.velocity) {
    const measured = unpack(curves.velocity.measured);
    const asked = curves.velocity.command ? unpack(curves.velocity.command) : null;
    const plots = [['vx', 'Forward', 'm/s'], ['vy', 'To the left', 'm/s'], ['wz', 'Turning left', 'rad/s']];
    for (const [axis, title, unit] of plots) {
      const series = [
        { name: 'measured', t: measured.t, y: measured[axis], color: '--faint', thin: true },
        { name: 'mean', t: measured.t, y: measured[`${axis}_mean`], color: '--measured' },
      ];
      if (asked) series.push({ name: 'asked', t: asked.t, y: asked[axis], color: '--asked', dashed: true });
      new TimePlot(`velocity-${axis}`, { title, unit, least: 0.6, series: () => series });
    }
  }
  if (curves.joints) setUpJoints();
  if (curves.lateness && curves.lateness.columns) {
    const { t, late } = unpack(curves.lateness.columns);
    new TimePlot('lateness-plot', {
      title: 'Late by', unit: 'ms', least: 1, floor0: true, missed: curves.lateness.missed,
      series: () => [{ name: 'each slot', t, y: late, color: '--measured', thin: true }],
    });
  }
  let width = 0;
  const redraw = () => {
    if (document.body.clientWidth === width) return; // A phone's address bar came or went.
    width = document.body.clientWidth;
    drawLatency();
    for (const plot of timed) plot.draw();
  };
  addEventListener('resize', redraw);
  redraw();
}

function setUpJoints() {
  const columns = unpack(curves.joints.columns);
  const select = document.getElementById('joint');
  for (const [index, name] of curves.joints.names.entries()) {
    element(select, 'option', name.replace(/_joint$/, '').replaceAll('_', ' ')).value = index;
  }
  select.value = Math.max(curves.joints.names.indexOf('left_knee_joint'), 0);
  const plot = new TimePlot('joint-plot', {
    title: 'Angle', unit: 'rad', least: 0.1, height: 240,
    series: () => [
      { name: 'measured', t: columns.t, y: columns[`measured ${select.value}`], color: '--measured' },
      { name: 'target', t: columns.t, y: columns[`target ${select.value}`], color: '--asked', thin: true },
    ],
  });
  select.onchange = () => plot.draw();
}

setUp();

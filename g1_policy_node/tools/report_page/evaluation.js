const data = JSON.parse(document.getElementById('data').textContent);

// An empty plot with its title and a key of the policies; returns the svg and its width.
function begin(host, title, height, names = data.policies, first = 0) {
  host.replaceChildren();
  const head = document.createElement('div');
  head.className = 'plot-title';
  const bold = document.createElement('b');
  bold.textContent = title;
  head.append(bold);
  names.forEach((name, i) => {
    const label = document.createElement('span');
    const key = document.createElement('i');
    key.className = `p${(first + i) % 6}`;
    label.append(key, name);
    head.append(label);
  });
  host.append(head);
  const width = host.clientWidth;
  return [add(host, 'svg', { height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': title }), width];
}

function signed(value) {
  return (value > 0 ? '+' : '') + value.toFixed(3).replace('-', '−');
}

// A row for each label, a dot for each policy: values[policy][row], null where there is none.
function dots(host, title, labels, values, { line, zero, low, high, unit }) {
  const row = 20, top = 6, left = host.clientWidth < 500 ? 118 : 150;
  const [svg, width] = begin(host, title, top + labels.length * row + 26);
  const right = width - 14, bottom = top + labels.length * row;
  const x = (v) => left + ((v - low) / (high - low)) * (right - left);
  for (const [v, text] of ticks(low, high, width < 500 ? 4 : 8)) {
    add(svg, 'line', { class: 'grid', x1: x(v), x2: x(v), y1: top, y2: bottom });
    add(svg, 'text', { x: x(v), y: bottom + 16, 'text-anchor': 'middle' }, text);
  }
  if (unit) add(svg, 'text', { x: 0, y: bottom + 16 }, unit);
  if (zero) add(svg, 'line', { class: 'zero', x1: x(0), x2: x(0), y1: top, y2: bottom });
  if (line !== undefined) add(svg, 'line', { class: 'missed', x1: x(line), x2: x(line), y1: top, y2: bottom });
  labels.forEach((label, i) => {
    const y = top + (i + 0.5) * row;
    add(svg, 'text', { class: 'label', x: left - 10, y: y + 4, 'text-anchor': 'end' }, label);
    const seen = values.map((one) => one[i]).filter((v) => v !== null);
    if (seen.length > 1) add(svg, 'line', { class: 'grid', x1: x(Math.min(...seen)), x2: x(Math.max(...seen)), y1: y, y2: y });
    values.forEach((one, policy) => {
      if (one[i] === null) {
        add(svg, 'text', { class: `fell p${policy % 6}`, x: x(low) + 4 + policy * 40, y: y + 4 }, 'fell');
        return;
      }
      const dot = add(svg, 'circle', { class: `dot p${policy % 6}`, cx: x(one[i]), cy: y, r: 5 });
      add(dot, 'title', {}, `${data.policies[policy]}: ${zero ? signed(one[i]) : one[i].toFixed(2)}`);
    });
  });
}

function drawErrors() {
  const number = (v) => String(v).replace('-', '−');
  const labels = data.commands.map((command) => command.map(number).join(', '));
  const axes = [['Forward, vx', 'm/s'], ['To the left, vy', 'm/s'], ['Turning left, wz', 'rad/s']];
  axes.forEach(([title, unit], axis) => {
    const values = data.errors.map((runs) => runs.map((error) => (error ? error[axis] : null)));
    const all = values.flat().filter((v) => v !== null);
    const most = Math.max(0.02, ...all.map(Math.abs)) * 1.08;
    const host = document.getElementById(`error-${axis}`);
    dots(host, `${title}: error, ${unit}`, labels, values, { zero: true, low: -most, high: most, unit: 'vx, vy, wz' });
  });
}

function drawTorque() {
  const labels = data.joints.map((name) => name.replace(/_joint$/, '').replaceAll('_', ' '));
  const high = Math.max(1.1, ...data.torque.flat()) * 1.04;
  dots(document.getElementById('torque'), 'Predicted torque / hardware limit', labels, data.torque, { line: 1, low: 0, high });
}

function drawKicks() {
  const { speeds, seeds, falls } = data.kicks;
  const [svg, width] = begin(document.getElementById('kicks'), `Falls of ${seeds}`, 230);
  const left = 36, right = width - 20, top = 10, bottom = 190;
  const low = Math.min(...speeds), span = Math.max(...speeds) - low || 1;
  const x = (v) => left + 14 + ((v - low) / span) * (right - left - 14);
  const y = (v) => bottom - (v / seeds) * (bottom - top);
  for (const [v, text] of ticks(0, seeds, 4)) {
    add(svg, 'line', { class: 'grid', x1: left, x2: right, y1: y(v), y2: y(v) });
    add(svg, 'text', { x: left - 6, y: y(v) + 4, 'text-anchor': 'end' }, text);
  }
  for (const v of speeds) add(svg, 'text', { x: x(v), y: bottom + 18, 'text-anchor': 'middle' }, v.toFixed(1));
  add(svg, 'text', { x: right, y: bottom + 36, 'text-anchor': 'end' }, 'size of the kicks, m/s');
  falls.forEach((counts, policy) => {
    const path = counts.map((n, i) => `${i ? 'L' : 'M'}${x(speeds[i]).toFixed(1)} ${y(n).toFixed(1)}`);
    add(svg, 'path', { class: `line p${policy % 6}`, d: path.join('') });
    counts.forEach((n, i) => {
      const dot = add(svg, 'circle', { class: `dot p${policy % 6}`, cx: x(speeds[i]), cy: y(n), r: 5 });
      add(dot, 'title', {}, `${data.policies[policy]}: ${n} of ${seeds} at ${speeds[i]} m/s`);
    });
  });
}

function drawPaths() {
  const host = document.getElementById('paths');
  host.replaceChildren();
  const points = data.paths.flat().flatMap((one) => one.path);
  const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
  const low = [Math.min(...xs) - 0.5, Math.min(...ys) - 0.5], high = [Math.max(...xs) + 0.5, Math.max(...ys) + 0.5];
  const plots = data.paths.map(() => document.createElement('div'));
  host.append(...plots); // All of them first: their number decides how wide they are.
  data.paths.forEach((runs, policy) => {
    const plot = plots[policy];
    plot.className = 'plot';
    const scale = plot.clientWidth / (high[0] - low[0]);
    const height = (high[1] - low[1]) * scale;
    const [svg] = begin(plot, data.policies[policy], height, [`${runs.length} commands, m`], policy);
    const x = (v) => (v - low[0]) * scale, y = (v) => height - (v - low[1]) * scale;
    for (const [v, text] of ticks(low[0], high[0], 6)) {
      add(svg, 'line', { class: 'grid', x1: x(v), x2: x(v), y1: 0, y2: height });
      add(svg, 'text', { x: x(v) + 3, y: height - 4 }, text);
    }
    for (const [v, text] of ticks(low[1], high[1], 4)) {
      add(svg, 'line', { class: 'grid', x1: 0, x2: plot.clientWidth, y1: y(v), y2: y(v) });
      if (y(v) < height - 24) add(svg, 'text', { x: 3, y: y(v) - 3 }, text);
    }
    for (const { command, path } of runs) {
      const d = path.map((p, i) => `${i ? 'L' : 'M'}${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join('');
      const line = add(svg, 'path', { class: `line p${policy % 6}`, d });
      add(line, 'title', {}, `asked for ${command.join(', ')}`);
    }
  });
}

let drawn = 0;
function draw() {
  if (document.body.clientWidth === drawn) return; // A phone's address bar came or went.
  drawn = document.body.clientWidth;
  drawKicks();
  drawErrors();
  drawPaths();
  drawTorque();
}
addEventListener('resize', draw);
draw();

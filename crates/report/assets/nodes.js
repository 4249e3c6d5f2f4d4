'use strict';
// What the nodes did over time: CPU, memory, devices.
const nodes = (() => {
  const percent = (value) => `${units.fractions(Math.round(value * 10) / 10)} %`;

  /** Two lines for each device: one device has the colours of the directions. */
  const ofDirections = (node, both) => node.devices.flatMap((device, d) => {
    const many = node.devices.length > 1;
    return both(device).map(([word, ys], dir) => ({
      name: `${device.name} ${word}`, color: many ? `line-${d}` : ['read', 'write'][dir], dash: many && dir ? charts.DASHES[1] : [], ys, hidden: d > 2,
    }));
  });

  /** The lines of a graph of a node: their names, colours and values. */
  const LINES = {
    cpu: (node) => [
      { name: 'user', color: 'line-0', ys: node.user },
      { name: 'system', color: 'line-1', ys: node.system },
      { name: 'iowait', color: 'line-2', ys: node.iowait },
      // Of machines that are nobody's guest it is always 0.
      ...(node.steal.some((value) => value >= 0.5) ? [{ name: 'steal', color: 'line-3', ys: node.steal }] : []),
    ],
    memory: (node) => [
      { name: 'page cache', color: 'line-0', ys: node.cache },
      { name: 'dirty', color: 'line-1', ys: node.dirty },
      { name: 'available', color: 'line-2', ys: node.available, hidden: true },
    ],
    bandwidth: (node) => ofDirections(node, (device) => [['read', device.read], ['written', device.write]]),
    util: (node) => node.devices.map((device, d) => ({ name: device.name, color: `line-${d}`, ys: device.util })),
    queue: (node) => node.devices.map((device, d) => ({ name: device.name, color: `line-${d}`, ys: device.queue })),
    await: (node) => ofDirections(node, (device) => [['read', device.read_await], ['write', device.write_await]]),
  };
  const AXES = {
    cpu: { format: percent, most: 100 },
    memory: { format: units.bytes, binary: true },
    bandwidth: { format: units.bytesPerSecond, binary: true },
    util: { format: percent, most: 100 },
    queue: { format: (value) => units.fractions(Math.round(value * 100) / 100) },
    await: { format: units.latency },
  };

  /** Each value from the begin of its interval to its end. */
  function stepped(node, ys) {
    return node.t.flatMap((_, i) => [ys[i], ys[i]]);
  }

  /** The ends of an interval; between two intervals stands a hair, so that times only grow. */
  function ends(node) {
    let last = -Infinity;
    return node.t.flatMap((t, i) => {
      const from = Math.max(t - node.span[i], last + 1e-6);
      last = Math.max(t, from + 1e-6);
      return [from, last];
    });
  }

  /** Draws a graph of a node; `time` has the clock and the steps of its axis. */
  function draw(host, data, place, graph, time) {
    const node = data.nodes[place];
    const lines = LINES[graph](node);
    if (!lines.length) {
      host.replaceChildren(charts.element('p', 'nothing', 'No device moved anything.'));
      return null;
    }
    const xs = ends(node);
    const table = [xs, ...lines.map((line) => stepped(node, line.ys))];
    const until = data.phases.reduce((most, phase) => Math.max(most, phase.to), xs[xs.length - 1]);
    return new charts.Chart(host, {
      label: `${node.name}: ${graph} over time`,
      x: { label: 'time', min: Math.min(xs[0], ...data.phases.map((phase) => phase.from)), max: until, format: time.clock, tell: time.clock, incrs: time.steps },
      y: AXES[graph],
      lines,
      bands: data.phases,
      source: () => table,
    });
  }

  return { draw };
})();

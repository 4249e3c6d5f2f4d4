'use strict';
// The page: which graphs there are, tabs, sortable tables, theme, paper.
const page = (() => {
  const report = JSON.parse(document.getElementById('report').textContent);
  const DIRS = ['read', 'write', 'trim', 'mixed', 'sync'];
  const PERCENTILES = [['p50', 'p50'], ['p99', 'p99'], ['p999', 'p99.9'], ['max', 'max']];
  const KINDS = { bw: 'bandwidth', iops: 'IOPS', clat: 'latency' };
  const FORMATS = { bw: units.bytesPerSecond, iops: units.count, clat: units.latency };
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  /** Hosts whose lines are drawn at first; the others wait in the legend. */
  const HOSTS_SHOWN = 14;
  const { fractions } = units;

  // ---- Series: a curve over depth, jobs or block size --------------------

  const xName = (series, value) => units.ofOption(series.x, value);

  function seriesX(series) {
    const to = series.log2 ? Math.log2 : (value) => value;
    const from = series.log2 ? (value) => Math.round(2 ** value) : (value) => value;
    const places = series.at.map(to);
    const [low, high] = [Math.min(...places), Math.max(...places)];
    const spare = Math.max((high - low) * 0.03, series.log2 ? 0.1 : 0.5);
    return {
      label: series.x,
      min: low - spare,
      max: high + spare,
      places,
      format: (value) => xName(series, from(value)),
      tell: (value) => `${series.x} ${xName(series, from(value))}`,
    };
  }

  /** The lines of one metric of a series, with their values beside them. */
  function seriesLines(series, metric) {
    const lines = [];
    for (const dir of DIRS) {
      const figures = series.dirs[dir];
      if (!figures) continue;
      if (metric === 'percentiles') {
        PERCENTILES.forEach(([key, name], p) => {
          if (!figures[key] || figures[key].every((value) => value === null)) return;
          lines.push({ name: `${dir} ${name}`, color: `${dir}-${p}`, dash: charts.DASHES[p], dots: true, ys: figures[key], dir });
        });
      } else if (figures[metric].some((value) => value !== null)) {
        lines.push({ name: dir, color: dir, dots: true, ys: figures[metric], errors: figures[`${metric}_error`], dir });
      }
    }
    return lines;
  }

  function seriesMarks(series, lines, metric) {
    if (metric === 'percentiles') return [];
    return lines.flatMap((line, l) => {
      const best = series.dirs[line.dir].best;
      return Object.keys(KINDS).filter((kind) => best[kind] !== null).map((kind) => ({ line: l, kind, at: best[kind] }));
    });
  }

  function drawSeries(host, series, metric) {
    const lines = seriesLines(series, metric);
    if (!lines.length) return nothing(host, metric === 'percentiles' ? 'The engine gave no percentiles.' : 'No figures.');
    const x = seriesX(series);
    const data = [x.places, ...lines.map((line) => line.ys)];
    const isLatency = metric === 'clat' || metric === 'percentiles';
    return new charts.Chart(host, {
      label: `${series.name}: ${metric} by ${series.x}`,
      x,
      y: { format: FORMATS[isLatency ? 'clat' : metric], log: isLatency, binary: metric === 'bw' },
      lines,
      source: () => data,
      marks: seriesMarks(series, lines, metric),
      failed: series.failed.map((at) => x.places[at]),
    });
  }

  // ---- IOPS against latency ------------------------------------------------

  function tradeoffLines(group) {
    const lines = [];
    for (const index of group) {
      const series = report.series[index];
      for (const dir of DIRS) {
        const figures = series.dirs[dir];
        if (!figures) continue;
        const points = [];
        series.at.forEach((at, i) => {
          const [iops, clat] = [figures.iops[i], figures.clat[i]];
          if (iops === null || clat === null || iops <= 0) return;
          points.push({
            x: iops,
            y: clat,
            told: [[series.x, xName(series, at)], ['IOPS', units.count(iops)], ['bandwidth', units.bytesPerSecond(figures.bw[i])], ['mean latency', units.latency(clat)]],
          });
        });
        if (!points.length) continue;
        const place = lines.length;
        lines.push({
          name: `${series.short} ${dir}`,
          color: `line-${place % 7}`,
          dash: charts.DASHES[Math.floor(place / 7) % charts.DASHES.length],
          hidden: place >= 7,
          points,
        });
      }
    }
    return lines;
  }

  function drawTradeoff(host, group) {
    const lines = tradeoffLines(group);
    if (!lines.length) return nothing(host, 'No point has both IOPS and a latency.');
    const points = lines.flatMap((line, l) => line.points.map((point) => ({ ...point, l }))).sort((a, b) => a.x - b.x);
    const xs = points.map((point) => point.x);
    const data = [xs, ...lines.map((_, l) => points.map((point) => (point.l === l ? point.y : null)))];
    return new charts.Chart(host, {
      label: 'IOPS against latency',
      x: { label: 'IOPS', format: units.count, tell: units.count, log: true },
      y: { format: units.latency, log: true },
      lines,
      source: () => data,
      curves: true,
    });
  }

  // ---- Time series ---------------------------------------------------------

  /** The blocks of samples by step, job and direction. */
  const tracks = new Map();
  for (const block of all('script[type=track]')) {
    const [step, job, dir] = block.dataset.of.split(',');
    const jobs = tracks.get(step) || tracks.set(step, new Map()).get(step);
    const dirs = jobs.get(job) || jobs.set(job, new Map()).get(job);
    const blocks = dirs.get(dir) || dirs.set(dir, []).get(dir);
    blocks.push(block);
  }

  const unpacked = new Map();

  /** The samples of a job of a step by direction; the last few are kept. */
  function samplesOf(step, job) {
    const key = `${step}/${job}`;
    const kept = unpacked.get(key);
    if (kept) return kept;
    const dirs = new Map();
    for (const [dir, blocks] of tracks.get(step).get(job)) {
      dirs.set(dir, samples.unpack(blocks.map((block) => block.textContent)));
    }
    if (unpacked.size > 8) unpacked.delete(unpacked.keys().next().value);
    unpacked.set(key, dirs);
    return dirs;
  }

  function timeLines(dirs, metric) {
    const lines = [];
    for (const [dir, track] of dirs) {
      if (metric !== 'clat') {
        if (dir !== 'sync') lines.push({ name: dir, color: dir, ys: track[metric], track });
        continue;
      }
      if (!track.mean.some((value) => value === value)) continue;
      lines.push({ name: `${dir} mean`, color: `${dir}`, thin: true, hidden: true, ys: track.mean, track });
      PERCENTILES.forEach(([key, name], p) => {
        lines.push({ name: `${dir} ${name}`, color: `${dir}-${p}`, dash: [], thin: p > 1, hidden: p === 3, ys: track[key], track });
      });
    }
    return lines;
  }

  /** A line for each host, so that the one that differs is seen among them. */
  function hostLines(step, metric) {
    const { hosts } = report.steps[step];
    const key = metric === 'clat' ? 'p99' : metric;
    const lines = [];
    let place = 0;
    for (const job of [...tracks.get(step).keys()].filter((name) => name !== 'all').sort((a, b) => a - b)) {
      let nth = 0;
      for (const [dir, track] of samplesOf(step, job)) {
        if (dir === 'sync' || !track[key].some((value) => value === value && value !== null)) continue;
        const name = `${hosts[job]} ${dir}${metric === 'clat' ? ' p99' : ''}`;
        lines.push({ name, color: `line-${place % 7}`, dash: charts.DASHES[nth % charts.DASHES.length], hidden: place >= HOSTS_SHOWN, thin: true, ys: track[key], track });
        nth += 1;
      }
      place += 1;
    }
    return lines;
  }

  /** What is seen of `lines` between two times (s) on so many pixels; each track is reduced by itself. */
  function seen(lines, start, from, until, pixels) {
    const tables = [];
    const order = [];
    let each = 1;
    for (const track of new Set(lines.map((line) => line.track))) {
      const own = lines.filter((line) => line.track === track);
      const low = Math.max(0, samples.lowerBound(track.t, from * 1000 + start) - 1);
      const high = Math.min(track.t.length, samples.lowerBound(track.t, until * 1000 + start) + 2);
      const cut = samples.reduce(track.t, own.map((line) => line.ys), low, high, pixels);
      each = Math.max(each, cut.each);
      tables.push([cut.times.map((t) => (t - start) / 1000), ...cut.values]);
      order.push(...own);
    }
    const same = tables.every((table) => table[0].length === tables[0][0].length && table[0].every((t, i) => t === tables[0][0][i]));
    const joined = same ? [tables[0][0], ...tables.flatMap((table) => table.slice(1))] : uPlot.join(tables, tables.map((table) => table.map(() => 2)));
    const places = lines.map((line) => 1 + order.indexOf(line));
    return { data: [joined[0], ...places.map((place) => joined[place])], each };
  }

  /** Seconds as a clock has them: `1:05`, `2:00:00`; short times with their fraction. */
  function clock(s) {
    if (s < 0) return '';
    if (s < 60) return `${fractions(s)} s`;
    const two = (n) => String(n).padStart(2, '0');
    const whole = Math.round(s);
    const [h, m] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
    return h ? `${h}:${two(m)}:${two(whole % 60)}` : `${m}:${two(whole % 60)}`;
  }

  const CLOCK_STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 4320000];

  function drawTime(host, step, job, metric) {
    const note = host.parentElement.querySelector('.merged');
    const lines = job === 'hosts' ? hostLines(step, metric) : timeLines(samplesOf(step, job), metric);
    if (!lines.length) return nothing(host, 'The engine gave no latencies.');
    const first = lines.map((line) => line.track.t[0] - line.track.span[0]);
    const start = first.reduce((a, b) => Math.min(a, b));
    const last = lines.map((line) => line.track.t[line.track.t.length - 1]).reduce((a, b) => Math.max(a, b));
    return new charts.Chart(host, {
      label: `${metric} over time`,
      x: { label: 'time', min: 0, max: Math.max((last - start) / 1000, 0.1), format: clock, tell: clock, incrs: CLOCK_STEPS },
      y: { format: FORMATS[metric], log: metric === 'clat', binary: metric === 'bw' },
      lines,
      source: (from, until, pixels) => {
        const { data, each } = seen(lines, start, from, until, pixels);
        note.textContent = each > 1 ? `${each} intervals share a column: the lowest and the highest of them are drawn. Zoom in for each.` : '';
        return data;
      },
    });
  }

  // ---- Cards: drawn when they come into view --------------------------------

  function nothing(host, why) {
    host.replaceChildren(charts.element('p', 'nothing', why));
    return null;
  }

  /** A card draws itself with the metric that its section shows. */
  function draw(card) {
    const host = card.querySelector('.plot');
    const metric = card.closest('[data-metric]')?.dataset.metric;
    erase(card);
    if (card.dataset.series !== undefined) card.chart = drawSeries(host, report.series[card.dataset.series], metric);
    else if (card.dataset.tradeoff !== undefined) card.chart = drawTradeoff(host, report.tradeoffs[card.dataset.tradeoff]);
    else if (card.dataset.maps !== undefined) card.chart = points.drawMaps(host, metric);
    else if (card.dataset.node !== undefined) card.chart = nodes.draw(host, report.nodes, card.dataset.node, card.dataset.graph, { clock, steps: CLOCK_STEPS });
    else card.chart = drawTime(host, card.dataset.step, card.querySelector('select.job').value, metric);
    if (card.view) card.chart?.show?.(card.view);
    delete card.view;
    card.dataset.drawn = '';
    if (!performance.getEntriesByName('fathom-drawn').length) performance.mark('fathom-drawn');
  }

  function erase(card) {
    card.chart?.destroy();
    card.chart = null;
    delete card.dataset.drawn;
  }

  const inView = new IntersectionObserver((seenNow) => {
    for (const { isIntersecting, target } of seenNow) {
      if (isIntersecting && target.dataset.drawn === undefined) draw(target);
    }
  }, { rootMargin: '300px' });

  /** Draws again what stands in view, and the rest when it comes. */
  function again(cards) {
    for (const card of cards) {
      erase(card);
      inView.unobserve(card);
      inView.observe(card);
    }
  }

  /** Tabs in the manner of the ARIA practices: arrows move, the chosen one has the focus. */
  function tabs(list) {
    const section = list.closest('[data-metric]');
    const buttons = all('[role=tab]', list);
    const choose = (chosen) => {
      for (const button of buttons) {
        const is = button === chosen;
        button.setAttribute('aria-selected', String(is));
        button.tabIndex = is ? 0 : -1;
      }
      section.dataset.metric = chosen.dataset.metric;
      again(all('.chart', section));
    };
    buttons.forEach((button, i) => {
      button.addEventListener('click', () => choose(button));
      button.addEventListener('keydown', (event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!by) return;
        const next = buttons[(i + by + buttons.length) % buttons.length];
        next.focus();
        choose(next);
      });
    });
  }

  /** Offers the jobs of a card's step, all together first. */
  function offerJobs(card) {
    const select = card.querySelector('select.job');
    const { jobs: names, hosts } = report.steps[card.dataset.step];
    const jobs = [...tracks.get(card.dataset.step).keys()].filter((job) => job !== 'all').sort((a, b) => a - b);
    const where = (job) => (hosts ? `on ${hosts[job]}` : `(${Number(job) + 1})`);
    const options = jobs.map((job) => new Option(`${names[job] ?? 'job'} ${where(job)}`, job));
    if (hosts && jobs.length > 1) options.unshift(new Option('every host', 'hosts'));
    if (tracks.get(card.dataset.step).has('all')) options.unshift(new Option(`all ${names.length} jobs together`, 'all'));
    select.replaceChildren(...options);
    select.hidden = options.length < 2;
  }

  /** What a step is called. */
  function stepName(place) {
    const { name } = report.steps[place];
    if (name) return name;
    const point = report.points.find((each) => each.steps.includes(Number(place)));
    return point ? points.idOf(point) : `step ${Number(place) + 1}`;
  }

  /** A select that chooses which step the one card of the time series shows. */
  function stepPicker(select) {
    select.append(...[...tracks.keys()].map((place) => new Option(stepName(place), place)));
    const card = document.getElementById(select.dataset.card);
    picker(select, (option) => {
      card.dataset.step = option.value;
      card.querySelector('.caption').textContent = option.textContent;
      offerJobs(card);
      again([card]);
    });
  }

  /** A select that chooses which node the graphs of nodes show. */
  function nodePicker(select) {
    const cards = all('.of-node .chart');
    picker(select, (option) => {
      for (const card of cards) {
        card.dataset.node = option.value;
        card.querySelector('.caption').textContent = option.textContent;
      }
      again(cards);
    });
  }

  /** Calls `choose` with what is chosen, by the select or by the buttons beside it. */
  function picker(select, choose) {
    const show = () => choose(select.selectedOptions[0]);
    select.addEventListener('change', show);
    for (const button of all('[data-by]', select.parentElement)) {
      button.addEventListener('click', () => {
        const next = select.selectedIndex + Number(button.dataset.by);
        if (next < 0 || next >= select.options.length) return;
        select.selectedIndex = next;
        show();
      });
    }
  }

  // ---- Tables ----------------------------------------------------------------

  /** Numbers before texts; what is missing last, whichever way it is sorted. */
  function compare(a, b, down) {
    const missing = (key) => key === '' || key === '–';
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    const [x, y] = [Number(a), Number(b)];
    const order = Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, undefined, { numeric: true }) : x - y;
    return down ? -order : order;
  }

  function sortable(table) {
    const heads = all('thead th', table);
    heads.forEach((head, column) => {
      head.querySelector('button').addEventListener('click', () => {
        const down = head.getAttribute('aria-sort') === 'ascending';
        heads.forEach((other) => other.removeAttribute('aria-sort'));
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        const body = table.tBodies[0];
        const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
        const rows = [...body.rows].map((row) => [key(row), row]);
        rows.sort(([a], [b]) => compare(a, b, down));
        body.append(...rows.map(([, row]) => row));
      });
    });
  }

  /** A button that copies the rows in view, with tabs between their cells. */
  function copier(table) {
    const button = charts.element('button', 'copy', 'Copy table');
    button.type = 'button';
    const text = (cells) => [...cells].map((cell) => cell.textContent.replace(/\s+/g, ' ').trim()).join('\t');
    button.addEventListener('click', async () => {
      const rows = [...table.rows].filter((row) => !row.hidden && !row.classList.contains('unpicked'));
      try {
        await navigator.clipboard.writeText(rows.map((row) => text(row.cells)).join('\n'));
        button.textContent = `${rows.length - 1} rows copied`;
      } catch {
        button.textContent = 'The browser does not allow it';
      }
    });
    const tools = table.closest('details')?.querySelector('.tools');
    if (tools) tools.append(button);
    else table.parentElement.after(button);
  }

  function filter(input) {
    const table = document.getElementById(input.dataset.table);
    input.addEventListener('input', () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
  }

  // ---- Theme and paper --------------------------------------------------------

  const drawn = () => all('.chart[data-drawn]');

  function toPaper() {
    charts.paper(true);
    for (const box of all('details.table')) box.open = true;
    for (const card of all('.chart').filter((each) => !each.hidden)) draw(card);
  }

  function fromPaper() {
    charts.paper(false);
    again(drawn());
  }

  all('[role=tablist]').forEach(tabs);
  all('table.sortable').forEach(sortable);
  all('table.sortable').forEach(copier);
  all('input[data-table]').forEach(filter);
  all('select.step').forEach(stepPicker);
  all('select.node').forEach(nodePicker);
  for (const select of all('select.job')) {
    const card = select.closest('.chart');
    offerJobs(card);
    select.addEventListener('change', () => again([card]));
  }
  points.begin({
    again,
    sampled: tracks,
    drawCard: (card) => {
      offerJobs(card);
      const select = card.querySelector('select.job');
      select.addEventListener('change', () => draw(card));
      draw(card);
    },
  });
  all('main .chart, header .chart').forEach((card) => inView.observe(card));
  window.addEventListener('beforeprint', toPaper);
  window.addEventListener('afterprint', fromPaper);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => again(drawn()));
  document.documentElement.classList.add('live');
  return { report, draw, compare };
})();

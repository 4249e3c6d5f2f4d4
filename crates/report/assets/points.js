'use strict';
// The points of a campaign: maps of all of them, what chooses among them, and
// everything about one in one place.
const points = (() => {
  const report = JSON.parse(document.getElementById('report').textContent);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const { element } = charts;
  const list = report.points;
  const FORMATS = { bw: units.bytesPerSecond, iops: units.count, clat: units.latency, p99: units.latency };
  const OUTCOMES = { done: 'valid', doubtful: 'doubtful', failed: 'failed', skipped: 'skipped', unfinished: 'not finished' };
  const SIGNS = { failed: '✗', skipped: '–', unfinished: '…' };

  const seriesOf = (point) => report.series[point.series];
  const idOf = (point) => (point.id.startsWith('/') ? seriesOf(point).name + point.id : point.id);
  const settingsOf = (point) => ({ ...seriesOf(point).settings, ...point.settings });
  const outcomeOf = (point) => point.outcome ?? (point.doubts ? 'doubtful' : 'done');
  const folderOf = (series) => series.name.split('/').slice(0, -1).join('/');

  /** One figure of a point in a direction; null when there is none. */
  function figure(point, dir, key) {
    const values = seriesOf(point).dirs[dir]?.[key];
    return !point.outcome && point.at !== undefined ? values?.[point.at] ?? null : null;
  }

  /** What a map shows of a point: rates of all directions added, the longest of latencies. */
  function shown(point, metric) {
    const values = Object.keys(seriesOf(point).dirs).map((dir) => figure(point, dir, metric)).filter((value) => value !== null);
    if (!values.length) return null;
    return metric === 'iops' || metric === 'bw' ? values.reduce((a, b) => a + b) : Math.max(...values);
  }

  // ---- What is chosen --------------------------------------------------------

  const mixOf = (settings) => {
    const rw = settings.rw ?? settings.readwrite;
    if (!rw) return '';
    return settings.rwmixread ? `${rw} ${settings.rwmixread} % reads` : rw;
  };

  /** What points are chosen by: a title, and the words that each point has. */
  const CHOICES = [
    ['test', (point) => [folderOf(seriesOf(point))]],
    ['block size', (point) => [settingsOf(point).bs ?? settingsOf(point).blocksize ?? '']],
    ['mix', (point) => [mixOf(settingsOf(point))]],
    ['direction', (point) => Object.keys(seriesOf(point).dirs).filter((dir) => figure(point, dir, 'bw') !== null)],
    ['verdict', (point) => [OUTCOMES[outcomeOf(point)]]],
  ];

  let picked = new Set(list.keys());
  const listeners = [];

  /** Calls `listener` with the chosen points, now and when others are. */
  function whenPicked(listener) {
    listeners.push(listener);
    listener(picked);
  }

  function pick(form) {
    const wanted = CHOICES.map(([title, words]) => [form.elements[title]?.value ?? '', words]);
    const search = form.elements.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    picked = new Set();
    list.forEach((point, n) => {
      const fits = wanted.every(([value, words]) => value === '' || words(point).includes(value));
      const text = search.length ? `${idOf(point)} ${Object.values(settingsOf(point)).join(' ')} ${point.why ?? ''}`.toLowerCase() : '';
      if (fits && search.every((word) => text.includes(word))) picked.add(n);
    });
    form.querySelector('output').textContent = `${picked.size} of ${list.length} points`;
    for (const listener of listeners) listener(picked);
  }

  function offer(form) {
    for (const [title, words] of CHOICES) {
      const values = [...new Set(list.flatMap(words))].filter((value) => value !== '');
      if (values.length < 2) continue;
      values.sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
      const label = element('label', '', `${title} `);
      const select = element('select');
      select.name = title;
      select.append(new Option('all', ''), ...values.map((value) => new Option(value, value)));
      label.append(select);
      form.append(label);
    }
    const search = element('input');
    search.type = 'search';
    search.name = 'search';
    search.placeholder = 'Search points';
    search.setAttribute('aria-label', 'Only points with these words');
    form.append(search, element('output', 'faint', `${list.length} of ${list.length} points`));
    form.addEventListener('input', () => pick(form));
    form.addEventListener('submit', (event) => event.preventDefault());
    form.hidden = false;
  }

  // ---- Maps --------------------------------------------------------------------

  /** The series of one folder over one option, with the points of each. */
  function groups() {
    const found = new Map();
    list.forEach((point, n) => {
      if (!picked.has(n) || point.at === undefined) return;
      const series = seriesOf(point);
      const key = `${folderOf(series)}\n${series.x}`;
      const rows = found.get(key) || found.set(key, new Map()).get(key);
      (rows.get(series) || rows.set(series, []).get(series)).push(n);
    });
    return found;
  }

  function cell(n, metric, most) {
    const point = list[n];
    const made = element('td');
    const link = element('a');
    link.href = `#p${n}`;
    const value = shown(point, metric);
    link.textContent = value === null ? SIGNS[point.outcome] ?? '·' : FORMATS[metric](value);
    if (point.doubts) link.textContent += ' ?';
    made.className = value === null ? outcomeOf(point) : 'heat';
    if (value !== null) made.style.setProperty('--share', String(Math.round((value / most) * 100) / 100));
    made.append(link);
    return made;
  }

  function map(name, rows, metric) {
    const [folder, x] = name.split('\n');
    const places = [...new Set([...rows].flatMap(([series]) => series.at))].sort((a, b) => a - b);
    const values = [...rows.values()].flat().map((n) => shown(list[n], metric)).filter((value) => value !== null);
    const most = values.length ? Math.max(...values) : 1;
    const table = element('table', 'map');
    table.append(element('caption', '', `${folder ? `${folder}, ` : ''}by ${x}`));
    const head = table.createTHead().insertRow();
    head.append(element('td'), ...places.map((at) => {
      const th = element('th', '', units.ofOption(x, at));
      th.scope = 'col';
      return th;
    }));
    const body = table.createTBody();
    for (const [series, own] of rows) {
      const row = body.insertRow();
      const th = element('th', '', series.short);
      th.scope = 'row';
      row.append(th);
      const at = new Map(own.map((n) => [series.at[list[n].at], n]));
      for (const place of places) row.append(at.has(place) ? cell(at.get(place), metric, most) : element('td'));
    }
    const box = element('div', 'scroll');
    box.append(table);
    return box;
  }

  /** Draws the maps of all chosen points. */
  function drawMaps(host, metric) {
    const maps = [...groups()].map(([name, rows]) => map(name, rows, metric));
    host.replaceChildren(...(maps.length ? maps : [element('p', 'nothing', 'No point is like that.')]));
    return { destroy: () => host.replaceChildren() };
  }

  // ---- Rows and cards ------------------------------------------------------------

  /** Cards that are drawn before somebody asks for more. */
  const SHOWN = 12;

  function fewCards(box) {
    const cards = all('.chart', box);
    let most = SHOWN;
    const more = element('button', 'more');
    more.type = 'button';
    box.after(more);
    const show = () => {
      const wanted = new Set([...picked].map((n) => list[n].series));
      const fitting = cards.filter((card) => wanted.has(Number(card.dataset.series)));
      for (const card of cards) card.hidden = true;
      for (const card of fitting.slice(0, most)) card.hidden = false;
      const left = fitting.length - most;
      more.hidden = left <= 0;
      more.textContent = `Show ${Math.min(left, 2 * SHOWN)} more of ${fitting.length} series`;
    };
    more.addEventListener('click', () => {
      most += 2 * SHOWN;
      show();
    });
    whenPicked(() => {
      most = SHOWN;
      show();
    });
    window.addEventListener('beforeprint', () => {
      most = cards.length;
      show();
    });
  }

  // ---- One point ------------------------------------------------------------------

  /** The text of a job file; of one that tells only what differs, put together. */
  function jobText(name) {
    const boxes = all('#job-files details');
    const wanted = [name, `${name}.ini`, `${name}.fio`];
    const place = boxes.findIndex((box) => wanted.includes(box.querySelector('summary').textContent));
    if (place < 0) return null;
    const text = boxes[place].querySelector('pre').textContent;
    if (!boxes[place].classList.contains('alike')) return text;
    const whole = boxes.slice(0, place).findLast((box) => !box.classList.contains('alike'));
    const lines = whole.querySelector('pre').textContent.split('\n');
    for (const differing of text.split('\n').filter(Boolean)) {
      const [, number, line] = /^(\d+): (.*)$/.exec(differing) ?? [];
      if (number) lines[Number(number) - 1] = line;
    }
    return lines.join('\n');
  }

  function facts(rows) {
    const table = element('table', 'facts');
    const body = table.createTBody();
    for (const [name, ...values] of rows) {
      const row = body.insertRow();
      const th = element('th', '', name);
      th.scope = 'row';
      row.append(th, ...values.map((value) => element('td', '', value)));
    }
    return table;
  }

  function figuresTable(point) {
    const KEYS = [['IOPS', 'iops'], ['bandwidth', 'bw'], ['mean latency', 'clat'], ['p50', 'p50'], ['p99', 'p99'], ['p99.9', 'p999'], ['max', 'max']];
    const dirs = Object.keys(seriesOf(point).dirs).filter((dir) => figure(point, dir, 'bw') !== null);
    if (!dirs.length) return null;
    const told = (dir, key) => {
      const value = figure(point, dir, key);
      const error = figure(point, dir, `${key}_error`);
      const format = FORMATS[key] ?? units.latency;
      return value === null ? '–' : format(value) + (error === null ? '' : ` ± ${format(error)}`);
    };
    const table = facts(KEYS.map(([name, key]) => [name, ...dirs.map((dir) => told(dir, key))]));
    const head = table.createTHead().insertRow();
    head.append(element('td'), ...dirs.map((dir) => {
      const th = element('th', '', dir);
      th.scope = 'col';
      return th;
    }));
    return table;
  }

  /** A part of what is told of a point. */
  function part(title, ...content) {
    const there = content.filter((each) => each !== null && each !== undefined);
    return there.length ? [element('h3', '', title), ...there] : [];
  }

  function paragraphs(texts) {
    return texts.map((text) => element('p', '', text));
  }

  const dialog = element('dialog');
  let charted = null;

  function timeCard(point, sampled) {
    const card = document.querySelector('#time .chart')?.cloneNode(true);
    const step = point.steps.map(String).find((place) => sampled.has(place));
    if (!card || step === undefined) return null;
    card.removeAttribute('id');
    card.dataset.step = step;
    card.querySelector('.caption').textContent = 'Over time';
    const box = element('div');
    box.dataset.metric = 'iops';
    box.append(card);
    return box;
  }

  /** Shows everything about a point; `page` draws what it did over time. */
  function show(n, page) {
    const point = list[n];
    const id = idOf(point);
    const outcome = outcomeOf(point);
    const title = element('h2', '', id);
    title.id = 'point-title';
    title.append(element('span', `badge ${{ done: 'good', failed: 'bad' }[outcome] ?? 'doubt'}`, OUTCOMES[outcome]));
    const close = element('button', 'close', 'Close');
    close.type = 'button';
    close.addEventListener('click', () => dialog.close());
    const reasons = [...(point.why ? [point.why] : []), ...(point.doubts ?? []).map((number) => report.doubts[number - 1])];
    const job = jobText(id);
    const pre = job === null ? null : element('pre', '', job);
    const card = timeCard(point, page.sampled);
    const settings = Object.entries(settingsOf(point)).map(([name, value]) => `${name}=${value}`).join(' ');
    dialog.replaceChildren(
      close,
      title,
      element('p', 'lead', settings),
      ...part('Verdict', ...paragraphs(reasons.length ? reasons : ['No reason was found against its figures.'])),
      ...part('Figures', figuresTable(point)),
      ...(card ? [card] : []),
      ...part('Job file', pre),
      ...part('Raw output', element('code', '', `raw/${id}/ in the folder of the record`)),
    );
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    charted?.chart?.destroy();
    charted = card ? card.querySelector('.chart') : null;
    if (charted) page.drawCard(charted);
  }

  /** Opens what the address names, now and when it changes. */
  function follow(page) {
    dialog.setAttribute('aria-labelledby', 'point-title');
    document.body.append(dialog);
    const open = () => {
      const n = /^#p(\d+)$/.exec(location.hash)?.[1];
      if (n !== undefined && list[n]) show(Number(n), page);
      else if (dialog.open) dialog.close();
    };
    dialog.addEventListener('close', () => {
      charted?.chart?.destroy();
      charted = null;
      if (/^#p\d+$/.test(location.hash)) history.replaceState(null, '', `${location.pathname}${location.search}#overview`);
    });
    window.addEventListener('hashchange', open);
    open();
  }

  /** Begins; `page` draws and filters what is not a point's alone. */
  function begin(page) {
    if (!list.length) return;
    all('#pick').forEach(offer);
    all('[data-few]').forEach(fewCards);
    const rows = all('#points tbody tr');
    whenPicked((chosen) => {
      for (const row of rows) row.classList.toggle('unpicked', !chosen.has(Number(row.dataset.p ?? row.id.slice(1))));
    });
    const maps = all('[data-maps]');
    listeners.push(() => page.again(maps));
    follow(page);
  }

  return { begin, drawMaps, idOf };
})();

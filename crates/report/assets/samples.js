'use strict';
// The interval samples: their packed form (docs/FORMAT.md), and what is drawn of
// a million of them on a thousand pixels.
const samples = (() => {
  /** Names of the latency columns, in the order of the packed form. */
  const BUCKETS = ['p50', 'p99', 'p999', 'max'];
  const SUB_BITS = 6;

  function bytesOf(base64) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  }

  // Where reading stands. Shared by all reads, so that the two functions below stay
  // the same for the compiler: a million samples are ten million calls.
  let packed = new Uint8Array(0);
  let next = 0;

  function begin(bytes) {
    packed = bytes;
    next = 0;
  }

  /** A LEB128 number; plain arithmetic, because shifts end at 32 bits. */
  function unsigned() {
    let byte = packed[next++];
    if (byte < 128) return byte;
    let value = byte & 127;
    let weight = 128;
    do {
      byte = packed[next++];
      value += (byte & 127) * weight;
      weight *= 128;
    } while (byte >= 128);
    return value;
  }

  function signed() {
    const value = unsigned();
    if (value < 2 ** 31) return (value >>> 1) ^ -(value & 1);
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /** First and last value of a histogram's bucket, in ns (model::histogram). */
  function bounds(bucket) {
    const group = Math.floor(bucket / 2 ** SUB_BITS);
    if (group < 2) return [bucket, bucket];
    const width = 2 ** (group - 1);
    const low = (2 ** SUB_BITS + (bucket % 2 ** SUB_BITS)) * width;
    return [low, low + width - 1];
  }

  /** The values of all buckets, by their number from 1; 0 is not measured. */
  const BUCKET_COUNT = (64 - SUB_BITS + 1) * 2 ** SUB_BITS;
  function values(of) {
    return Float64Array.from({ length: BUCKET_COUNT + 1 }, (_, b) => (b === 0 ? NaN : of(...bounds(b - 1))));
  }
  /** Percentiles are shown as the middle of their bucket, the maximum as its end. */
  const MIDDLES = values((low, high) => low + Math.ceil((high - low) / 2));
  const ENDS = values((low, high) => high);

  function columns(n) {
    const made = { t: new Float64Array(n), span: new Float64Array(n) };
    for (const name of ['ios', 'bytes', 'mean', ...BUCKETS]) made[name] = new Float64Array(n);
    return made;
  }

  /** Reads one block into `into` from place `at` on; gives the number of samples. */
  function readBlock(bytes, into, at) {
    begin(bytes);
    const n = unsigned();
    const end = at + n;
    let last = 0;
    for (let i = at; i < end; i++) into.t[i] = last += unsigned();
    for (let i = at; i < end; i++) {
      into.span[i] = (i > at ? into.t[i] - into.t[i - 1] : 0) + signed();
    }
    last = 0;
    for (let i = at; i < end; i++) into.ios[i] = last += signed();
    for (let i = at; i < end; i++) {
      const known = i > at && into.ios[i - 1] > 0;
      const size = known ? into.bytes[i - 1] / into.ios[i - 1] : 0;
      into.bytes[i] = Math.floor(into.ios[i] * size) + signed();
    }
    last = 0;
    for (let i = at; i < end; i++) {
      last += signed();
      into.mean[i] = last === 0 ? NaN : last;
    }
    BUCKETS.forEach((name) => {
      const value = name === 'max' ? ENDS : MIDDLES;
      const column = into[name];
      last = 0;
      for (let i = at; i < end; i++) column[i] = value[(last += signed())];
    });
    return n;
  }

  /** A track: the samples of one job and direction of a step, from its blocks. */
  function unpack(blocks) {
    const all = blocks.map(bytesOf);
    const counts = all.map((bytes) => {
      begin(bytes);
      return unsigned();
    });
    const track = columns(counts.reduce((sum, n) => sum + n, 0));
    let at = 0;
    for (const bytes of all) at += readBlock(bytes, track, at);
    const longest = track.span.reduce((most, span) => Math.max(most, span), 0);
    const last = track.span.length - 1;
    // The end of a step may be a few ms, whose rate means nothing.
    const isDrawn = (i) => track.span[i] > 0 && (i < last || track.span[i] * 4 >= longest * 3);
    const rate = (what) => {
      const rates = new Float64Array(what.length);
      for (let i = 0; i < rates.length; i++) rates[i] = isDrawn(i) ? (what[i] * 1000) / track.span[i] : NaN;
      return rates;
    };
    track.iops = rate(track.ios);
    track.bw = rate(track.bytes);
    return track;
  }

  /** The place of the first time that is not before `t`. */
  function lowerBound(times, t) {
    let low = 0;
    let high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < t) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Adds the lowest and the highest of a stretch to `out`, in their order; nulls without any. */
  function extremes(ys, from, to, out) {
    let low = -1;
    let high = -1;
    for (let i = from; i < to; i++) {
      const y = ys[i];
      if (y !== y) continue;
      if (low < 0 || y < ys[low]) low = i;
      if (high < 0 || y > ys[high]) high = i;
    }
    if (low < 0) out.push(null, null);
    else out.push(ys[Math.min(low, high)], ys[Math.max(low, high)]);
  }

  /**
   * What is drawn of the samples `from`…`to` (places) on `pixels` columns: all of
   * them when they fit, else of each column the lowest and the highest, in their
   * order, so that no peak is lost. Gives the times, the values of each of `series`
   * (null: none), and how many samples share a column.
   */
  function reduce(times, series, from, to, pixels) {
    const each = Math.ceil((to - from) / Math.max(1, pixels));
    if (each <= 2) {
      const plain = (ys) => Array.from(ys.subarray(from, to), (y) => (y === y ? y : null));
      return { times: Array.from(times.subarray(from, to)), values: series.map(plain), each: 1 };
    }
    const out = { times: [], values: series.map(() => []), each };
    for (let at = from; at < to; at += each) {
      const end = Math.min(at + each, to);
      out.times.push(times[at], times[end - 1] > times[at] ? times[end - 1] : times[at] + 0.5);
      series.forEach((ys, s) => extremes(ys, at, end, out.values[s]));
    }
    return out;
  }

  return { unpack, readBlock, columns, bytesOf, reduce, lowerBound };
})();

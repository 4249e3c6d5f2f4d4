'use strict';
// Numbers as Fathom shows them everywhere: the rules of model::units.
const units = (() => {
  /** `value` with `digits` decimals; exact halves go to the even digit, as Rust rounds. */
  function fixed(value, digits) {
    const scaled = Math.abs(value) * 10 ** digits;
    const down = Math.floor(scaled);
    // Only multiples of 1/8 can be exact halves of up to two decimals.
    if (scaled - down === 0.5 && Number.isInteger(value * 8)) {
      const even = (down % 2 === 0 ? down : down + 1) / 10 ** digits;
      return (value < 0 ? -even : even).toFixed(digits);
    }
    return value.toFixed(digits);
  }

  function threeDigits(value) {
    const magnitude = Math.abs(value);
    if (Number.isInteger(value) || magnitude >= 99.95) return fixed(value, 0);
    return fixed(value, magnitude >= 9.995 ? 1 : 2);
  }

  function scale(value, base, names) {
    let unit = 0;
    // 999.5 would be shown as 1000: it belongs to the next unit.
    while (Math.abs(value) >= Math.min(base, 999.5) && unit + 1 < names.length) {
      value /= base;
      unit += 1;
    }
    return [value, names[unit]];
  }

  function bytes(value) {
    const [scaled, unit] = scale(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']);
    return `${threeDigits(scaled)} ${unit}`;
  }

  function count(value) {
    const [scaled, unit] = scale(value, 1000, ['', 'k', 'M', 'G', 'T']);
    return `${threeDigits(scaled)}${unit}`;
  }

  function latency(ns) {
    const [scaled, unit] = scale(ns, 1000, ['ns', 'µs', 'ms', 's']);
    return `${threeDigits(scaled)} ${unit}`;
  }

  function duration(ms) {
    const two = (n) => String(n).padStart(2, '0');
    const s = Math.floor(ms / 1000);
    if (s === 0) return `${ms} ms`;
    if (s < 60) return `${s}.${Math.floor((ms % 1000) / 100)} s`;
    if (s < 3600) return `${Math.floor(s / 60)}m${two(s % 60)}s`;
    if (s < 86400) return `${Math.floor(s / 3600)}h${two(Math.floor((s % 3600) / 60))}m`;
    return `${Math.floor(s / 86400)}d${two(Math.floor((s % 86400) / 3600))}h`;
  }

  /** Whole numbers as they are, others with three digits. */
  const fractions = (value) => (Number.isInteger(value) ? value : Number(value.toPrecision(3))).toString();

  /** The value of a job's option: block sizes and other sizes as such, other numbers plainly. */
  function ofOption(option, value) {
    return /^bs$|size/.test(option) ? bytes(value) : fractions(value);
  }

  return { fractions, ofOption, bytes, bytesPerSecond: (value) => `${bytes(value)}/s`, count, latency, duration };
})();

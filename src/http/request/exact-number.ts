// Whether a JSON number, as written, survives being read as a double and written again.

/** False where digits would be lost: what we sent on or signed would not be what the caller wrote. */
export function isExactNumber(source: string): boolean {
  if (/^-?\d{1,15}$/.test(source)) return true;
  const value = Number(source);
  return Number.isFinite(value) && decimalOf(source) === decimalOf(String(value));
}

/** One spelling for each decimal value, without sign: significant digits and the power of ten of the last. */
function decimalOf(text: string): string {
  const [, whole = '', fraction = '', power = '0'] =
    /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = whole + fraction;
  // Loops, not /0+$/: that takes quadratic time on a long run of zeros before another digit.
  let start = 0;
  while (digits[start] === '0') start++;
  let end = digits.length;
  while (end > start && digits[end - 1] === '0') end--;
  if (start === end) return '0';
  return `${digits.slice(start, end)}e${Number(power) - fraction.length + (digits.length - end)}`;
}

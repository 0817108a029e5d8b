// The Retry-After header (RFC 9110 §10.2.3): seconds, or a date in one of HTTP's three forms (§5.6.7).

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const FORMS = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?<day>\d\d) (?<month>[A-Z][a-z]{2}) (?<year>\d{4}) (?<time>\d\d:\d\d:\d\d) GMT$/,
  // Sunday, 06-Nov-94 08:49:37 GMT
  /^[A-Z][a-z]{5,8}, (?<day>\d\d)-(?<month>[A-Z][a-z]{2})-(?<year>\d\d) (?<time>\d\d:\d\d:\d\d) GMT$/,
  // Sun Nov  6 08:49:37 1994
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?<month>[A-Z][a-z]{2}) (?<day>[ \d]\d) (?<time>\d\d:\d\d:\d\d) (?<year>\d{4})$/,
];

/** Whole ms from `nowMs`, not under 0; null where absent or unreadable. */
export function retryAfterMs(text: string | null, nowMs: number): number | null {
  const value = text?.trim() ?? '';
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1000, Number.MAX_SAFE_INTEGER);
  const date = httpDateMs(value, nowMs);
  return date === null ? null : Math.max(0, Math.ceil(date - nowMs));
}

function httpDateMs(text: string, nowMs: number): number | null {
  const parts = FORMS.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined);
  if (parts === undefined) return null;
  const { day = '', month = '', year = '', time = '' } = parts;
  const [hours = 0, minutes = 0, seconds = 0] = time.split(':').map(Number);
  const index = MONTHS.indexOf(month);
  if (index < 0 || Number(day) < 1 || Number(day) > 31 || hours > 23 || minutes > 59 || seconds > 60)
    return null;
  const at = (fullYear: number) => Date.UTC(fullYear, index, Number(day), hours, minutes, seconds);
  if (year.length === 4) return at(Number(year));
  // Two digits: this century, unless that is more than 50 years ahead.
  const thisCentury = at(2000 + Number(year));
  return thisCentury - nowMs > 50 * 365.25 * 86_400_000 ? at(1900 + Number(year)) : thisCentury;
}

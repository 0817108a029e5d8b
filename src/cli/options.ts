// How the texts of options and arguments are read. Each throws `InvalidArgumentError`.
import { InvalidArgumentError } from 'commander';

const DATE = /^(\d{4})-(\d\d)-(\d\d)(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

/** A date (its beginning, UTC) or a time with its zone, as Unix ms. */
export function readDate(text: string): number {
  const [, year, month, day] = DATE.exec(text)?.map(Number) ?? [];
  const ms = year === undefined ? Number.NaN : Date.parse(text);
  // Some runtimes read 30 February as a day in March.
  const isDay = new Date(Date.UTC(year ?? 0, (month ?? 0) - 1, day)).getUTCDate() === day;
  if (Number.isNaN(ms) || !isDay)
    throw new InvalidArgumentError('It must be a date, or a time with its zone.');
  return ms;
}

/** Texts of this form, as they are. */
export const textOf =
  (form: RegExp, problem: string) =>
  (text: string): string => {
    if (form.test(text)) return text;
    throw new InvalidArgumentError(problem);
  };

export const readAddress = textOf(/^0x[0-9a-fA-F]{40}$/, 'It must be 0x and 40 hex digits.');

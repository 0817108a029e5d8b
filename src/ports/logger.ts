// Lines for the operator. Never a URL, header, body, key, signature or address of a caller or target.

export interface Logger {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** `cause` keeps its stack in the log and goes nowhere else. */
  error(message: string, fields?: LogFields & { cause?: unknown }): void;
}

export type LogFields = { readonly [name: string]: unknown };

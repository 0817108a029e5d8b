// Lines for the operator. Never a URL, header, body, key, signature or address of a caller or target.

export interface Logger {
  info(message: string, fields?: LogFields): void;
  /** `cause`: whatever was thrown; it keeps its stack in the log and goes nowhere else. */
  warn(message: string, fields?: LogFields & { cause?: unknown }): void;
  error(message: string, fields?: LogFields & { cause?: unknown }): void;
}

/** Lines of every single call, for an operator who asks for all of them (LOG_LEVEL=debug). */
export interface DetailLogger {
  debug(message: string, fields?: LogFields): void;
}

export type LogFields = { readonly [name: string]: unknown };

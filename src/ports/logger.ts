// Log lines for the operator. They contain no URL, header, body, key, signature or address of a caller or destination.

export interface Logger {
  info(message: string, fields?: LogFields): void;
  /** `cause`: the value thrown. Its stack is written to the log only. */
  warn(message: string, fields?: LogFields & { cause?: unknown }): void;
  error(message: string, fields?: LogFields & { cause?: unknown }): void;
}

/** Lines of every single call, for LOG_LEVEL=debug. */
export interface DetailLogger {
  debug(message: string, fields?: LogFields): void;
}

export type LogFields = { readonly [name: string]: unknown };

// What a target's complete answer means, by its status alone.
import type { ErrorCategory } from '../event-fields.ts';

export function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}

/** null: success. A final status outside 200 to 599 is no answer that HTTP knows. */
export function categoryOfStatus(status: number): ErrorCategory | null {
  if (isSuccess(status)) return null;
  if (status === 429) return 'target_rate_limited';
  if (status >= 300 && status <= 399) return 'target_redirect';
  if (status >= 400 && status <= 499) return 'target_client_error';
  if (status >= 500 && status <= 599) return 'target_server_error';
  return 'protocol_error';
}

// Requests of the page to its own relay, without credentials; the page makes no other requests.
import { UnusableInput } from '../given.ts';
import { CannotVerify } from '../primitives.ts';

/** The relay did not answer, or with an error. `message`: for people. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/** `text`: null if it does not exist (404), or not yet (409). */
export async function fetched(path: string): Promise<string | null> {
  try {
    const response = await fetch(path, { credentials: 'omit', cache: 'no-store' });
    if (response.ok) return await response.text();
    if (response.status === 404 || response.status === 409) return null;
    throw new Unreachable(`The relay answered ${path} with ${response.status}.`);
  } catch (error) {
    if (error instanceof Unreachable) throw error;
    throw new Unreachable(`The relay did not answer the request for ${path}: you may be offline.`);
  }
}

export async function fetchedKeys(path: string): Promise<string> {
  const keys = await fetched(path);
  if (keys === null) throw new Unreachable('The relay publishes no keys.');
  return keys;
}

/** The reason why nothing could be checked. Logs an error of this script to the browser's console. */
export function uncheckedReason(error: unknown): string {
  if (error instanceof Unreachable || error instanceof CannotVerify || error instanceof UnusableInput)
    return error.message;
  reportError(error);
  return 'The script of this page failed; the details are in the console of the browser.';
}

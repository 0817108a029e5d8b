// What the page's own relay is asked for. Nothing else is ever asked, and nothing is sent along.
import { Unusable } from '../given.ts';
import { CannotVerify } from '../primitives.ts';

/** The relay could not be asked, or did not answer. `message`: for people. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/** `text`: null where there is no such thing (404), or not yet (409). */
export async function fetched(path: string): Promise<string | null> {
  try {
    const response = await fetch(path, { credentials: 'omit', cache: 'no-store' });
    if (response.ok) return await response.text();
    if (response.status === 404 || response.status === 409) return null;
    throw new Unreachable(`The relay answered ${path} with ${response.status}.`);
  } catch (error) {
    if (error instanceof Unreachable) throw error;
    throw new Unreachable(`The relay could not be asked for ${path}: you may be offline.`);
  }
}

export async function fetchedKeys(path: string): Promise<string> {
  const keys = await fetched(path);
  if (keys === null) throw new Unreachable('The relay shows no keys.');
  return keys;
}

/** Why nothing could be checked, in words. A fault of this script is no reason: it goes to the browser's console. */
export function reasonOf(error: unknown): string {
  if (error instanceof Unreachable || error instanceof CannotVerify || error instanceof Unusable)
    return error.message;
  reportError(error);
  return 'This page has a fault of its own; the details are in the console of the browser.';
}

// What the doctor states of a part.
import { OperatorError } from '#src/lib/operator-error.ts';
import { systemCode } from '#src/lib/system-error.ts';
import { startError } from '../start-errors.ts';

/** `problem`: the service would not start, or calls would fail. `warning`: it works, and will be hurt later. */
type State = 'ok' | 'warning' | 'problem' | 'skipped';

/** `message`: one line, without the value of a secret variable. */
export type Checked = { readonly state: State; readonly message: string };

/** `part`: a stable name. */
export type DoctorFinding = Checked & { readonly part: string };

export const fine = (message: string): Checked => ({ state: 'ok', message });
export const warning = (message: string): Checked => ({ state: 'warning', message });
export const problem = (message: string): Checked => ({ state: 'problem', message });
export const skipped = (message: string): Checked => ({ state: 'skipped', message });

/** What is printed of an error: the messages of drivers and runtimes may contain addresses with passwords. */
export function printedReason(error: unknown): string {
  const known = startError(error);
  if (known instanceof OperatorError) return known.message.replace(/\s*\n\s*/g, '; ').replace(':;', ':');
  for (let at = error; at instanceof Error; at = at.cause) {
    const code = systemCode(at);
    if (code !== null) return `failed with ${code}`;
  }
  return `failed with ${error instanceof Error ? error.name : typeof error}`;
}

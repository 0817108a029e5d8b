// Defects that are put back to prove that the simulation sees them: each replaces a text of a module, in the memory of the
// worker that runs it.
import type { Change } from './alter-module.ts';

export type Defect = {
  readonly name: string;
  readonly what: string;
  readonly changes: readonly Change[];
  /** It is seen within the first so many seeds. */
  readonly within: number;
};

const at = (file: string, find: string, replace: string): Change => ({ file, find, replace });

const EXECUTION = 'src/usecases/execution';

export const DEFECTS: readonly Defect[] = [
  {
    name: 'settles_again_after_lost_answer',
    what: 'a repeat settles again without its own claim',
    within: 400,
    changes: [
      at(
        `${EXECUTION}/payment-steps.ts`,
        'claimed = await it.call.deadline.forAppend(appendPayment(deps, view, retried));',
        'void retried;',
      ),
    ],
  },
];

// What a policy check tells: the same verdict that a decision and an execution go by, and what would be sent.
import type { TargetRefused } from './judge-request.ts';

export type PolicyCheck = {
  readonly verdict:
    | { readonly allowed: true }
    | {
        readonly allowed: false;
        readonly refusal: TargetRefused;
      };
  readonly target: { readonly protocol: 'https:'; readonly hostname: string; readonly port: number };
  readonly normalized: {
    readonly method: string;
    readonly retry: { readonly attempts: number; readonly backoffMs: number };
    readonly timeoutMs: number;
    readonly idempotencyKeyPresent: boolean;
    readonly forwardedHeaders: readonly string[];
    readonly strippedHeaders: readonly string[];
    readonly bodyPresent: boolean;
  };
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
};

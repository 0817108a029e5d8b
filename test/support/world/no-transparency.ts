// What a relay without a transparency log answers.
import type { Transparency } from '#src/usecases/transparency/proofs.ts';

export const noTransparency: Transparency = {
  latest: () => null,
  checkpoint: async () => null,
  newest: async () => null,
  covering: async () => null,
  key: async () => null,
  tile: async () => null,
  prove: async () => null,
  consistency: async () => null,
};

/** The texts about results that were not measured now. */
export const TEXTS = {
  given: {
    link: "This result came with the link. The service did not check it: whoever made the link could change it.",
    file: "This result came from a file. The service did not check it: whoever has the file could change it.",
    damaged: "This result is damaged; ask for the link or the file again.",
    noResult:
      "This file is not the whole result of a run of this version of sixscope; drop one that “Download JSON” has saved.",
    mismatch: "This result is not one of this version of sixscope, so it is not shown.",
    tooLong: (length: number, most: number) =>
      `Too large for a link (${Math.ceil(length / 1000)} of ${most / 1000} kB); download it instead`,
  },
} as const;

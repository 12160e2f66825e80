/** What stands over a block in a request: the prompts name it. */
export const BLOCK_HEADER = "[Compressed conversation section]";

/** The tag around a reminder. */
export const REMINDER_TAG = "dcp-system-reminder";

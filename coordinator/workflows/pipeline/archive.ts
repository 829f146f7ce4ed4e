import { output, tool } from "loopkeeper";
import type { Phase } from "loopkeeper";
import type { Crew } from "./crew";
import type { File } from "./implement";

/** Keeps what was made, and why, where the next one finds it; and writes the files, where a folder is named. */
export const archive = (_: Crew): Phase => ({
  name: "archive",
  needs: ["folder", "clarify", "design", "decompose", "test_plan", "implement", "end_to_end", "acceptance"],
  async run({ folder, implement, ...record }) {
    const files: File[] = implement.files;
    output("record", record);
    output("files", files);
    if (folder !== "") for (const { path, text } of files) await tool("file.write", { path: `${folder}/${path}`, body: text, folders: true });
    return { files: files.map(({ path }) => path), written: folder !== "", end_to_end: record.end_to_end, acceptance: record.acceptance.verdict };
  },
});

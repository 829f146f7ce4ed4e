package durable

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// top is the top of the source.
func top(t testing.TB) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

const stamp = "-ldflags=-X=github.com/loopkeeper/loopkeeper/cmd/loopkeeper/cli.version="

// asking is a built-in workflow of one version; the other says another word.
func asking(word string) string {
	return `/** Asks, and then works. */
import { approve, batch, t } from "loopkeeper";
export const params = t.object({ model: t.string(), items: t.array(t.any()) });
export default async function partition({ model, items }: t.Of<typeof params>) {
  const said = await approve({ title: "go on with ` + word + `?" });
  const made = await batch({ model, items, prompt: "` + word + ` {{item}}", schema: t.object({ of: t.string() }) });
  return { version: "` + word + `", by: said.by, of: made.values.map((v: any) => v.of) };
}
`
}

// The program is killed while an approval waits, once to be started again and once to be replaced by a build with another version and
// another text of the workflow that runs. The approval is still there, and the run goes on as the workflow that it began as.
func TestAnApprovalWaitsOverAnUpgrade(t *testing.T) {
	if testing.Short() {
		t.Skip("left out: it builds the program twice")
	}
	root := top(t)
	version := func(word string) string {
		return build(t, root, stamp+word, overlay(t, root, map[string]string{"coordinator/workflows/partition.ts": asking(word)}))
	}
	older, newer := version("older"), version("newer")
	h := newHome(t, &machine{id: "n1", slots: 2})
	h.start(older)
	run := strings.TrimSpace(h.ask(older, "run", "partition", "--detach", "--set", "model="+model, "--set", `items=["a","b"]`))
	run = strings.Fields(run)[0]
	h.eventually("go on with older?", older, "approvals")
	h.kill()
	h.start(older)
	if out := h.ask(older, "approvals"); !strings.Contains(out, "go on with older?") {
		t.Errorf("after a restart there waits\n%s", out)
	}
	h.kill()
	h.start(newer)
	if out := h.ask(newer, "version"); !strings.Contains(out, "newer") {
		t.Fatalf("the program was not replaced: %s", out)
	}
	if out := h.ask(newer, "approvals"); !strings.Contains(out, "go on with older?") {
		t.Errorf("after the upgrade there waits\n%s", out)
	}
	h.ask(newer, "approve", run)
	h.ask(newer, "watch", run) // ends with the run; its exit status says that it is completed
	if out := h.ask(newer, "result", run); !strings.Contains(out, "older") || strings.Contains(out, "newer") {
		t.Errorf("the run that the older version began ended with\n%s", out)
	}
	h.ask(newer, "replay", run)
	next := strings.Fields(h.ask(newer, "run", "partition", "--detach", "--set", "model="+model, "--set", `items=["a"]`))[0]
	h.eventually("go on with newer?", newer, "approvals", next)
}

// firstThatAsks is the commit since which a person can be asked from the command line.
const firstThatAsks = "d05a4d8"

const sends = `import { approve, generate, t } from "loopkeeper";
export default async function flow() {
  const made = await generate({ model: "small:8b", prompt: "write", schema: t.object({ of: t.string() }) });
  const said = await approve({ title: "send it?", show: [made.of] });
  const sent = await generate({ model: "small:8b", prompt: "send", schema: t.object({ of: t.string() }) });
  return [made.of, said.outcome, sent.of];
}
`

// unpack writes the files of a tar archive into a folder.
func unpack(t *testing.T, archive []byte, dir string) {
	t.Helper()
	for files := tar.NewReader(bytes.NewReader(archive)); ; {
		head, err := files.Next()
		if err == io.EOF {
			return
		}
		var body []byte
		if err == nil && head.Typeflag == tar.TypeReg {
			body, err = io.ReadAll(files)
		}
		if err == nil && head.Typeflag == tar.TypeReg {
			path := filepath.Join(dir, head.Name)
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, body, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A ledger that a program of another commit wrote, with a run that waits for a person, is taken over by this one.
func TestAnApprovalWaitsOverAnUpgradeFromAnotherCommit(t *testing.T) {
	if testing.Short() {
		t.Skip("left out: it builds the program of another commit")
	}
	root := top(t)
	source, err := exec.Command("git", "-C", root, "archive", "--format=tar", firstThatAsks).Output()
	if err != nil {
		t.Skipf("left out: the commit %s is not here, as in a shallow clone: %v", firstThatAsks, err)
	}
	tree := t.TempDir()
	unpack(t, source, tree)
	older, newer := build(t, tree), build(t, root)
	h := newHome(t, &machine{id: "n1", slots: 2})
	write(t, filepath.Join(h.dir, "ask.ts"), sends)
	h.start(older)
	run := strings.Fields(h.ask(older, "run", "--detach", "ask.ts"))[0]
	h.eventually("send it?", older, "approvals")
	h.kill()
	h.start(newer)
	h.ask(newer, "approve", run)
	h.ask(newer, "watch", run)
	if out := h.ask(newer, "result", run); !strings.Contains(out, "approved") || !strings.Contains(out, "send") {
		t.Errorf("the run ended with\n%s", out)
	}
	h.ask(newer, "replay", run)
}

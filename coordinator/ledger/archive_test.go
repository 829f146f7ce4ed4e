package ledger_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger/ledgertest"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

var ended = []string{"completed"}

// exported makes a run with a few events and bodies, and returns it as a file.
func exported(t *testing.T) []byte {
	t.Helper()
	s := open(t, t.TempDir())
	small, large := []byte("a reply: ü"), bytes.Repeat([]byte("large "), ledger.InlineLimit/4)
	c := ledgertest.Story("r1", "completed", 1, 4)
	c.Runs[0].Ended = ledgertest.At.Add(time.Hour)
	c.Events[1].Payload = json.RawMessage(`{"raw":"` + ledger.Digest(small) + `","n":1e400,"a":"<\u0000>"}`)
	c.Events[2].Payload = json.RawMessage(`{"result":{"ref":"` + ledger.Digest(large) + `"}}`)
	c.Bodies = []ledger.Body{{Name: "reply", Data: small}, {Data: large}}
	c.Decisions = []ledger.Decision{{RunID: "r1", Time: ledgertest.At, Action: "start", Why: json.RawMessage(`{"n":1}`)}}
	must(t, s.Append(t.Context(), c))
	var b bytes.Buffer
	must(t, s.Export(t.Context(), "r1", &b))
	return b.Bytes()
}

// What README.txt in an export says, done.
func TestAnExportIsReadWithCommonTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "r1.tar.gz")
	must(t, os.WriteFile(file, exported(t), 0o600))
	for _, tool := range []string{"tar", "sha256sum", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here: the commands were not tried", tool)
		}
	}
	if out, err := exec.Command("tar", "-xzf", file, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v %s", err, out)
	}
	in := filepath.Join(dir, "run")
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = in
	out, err := check.CombinedOutput()
	if err != nil || strings.Count(string(out), ": OK\n") != 8 {
		t.Fatalf("sha256sum: %v\n%s", err, out)
	}
	readme, err := os.ReadFile(filepath.Join(in, "README.txt"))
	must(t, err)
	_, code, _ := strings.Cut(string(readme), "In Python:\n\n")
	code, _, _ = strings.Cut(code, "\n\nThat shows")
	python := exec.Command("python3", "-c", strings.ReplaceAll("\n"+code, "\n    ", "\n"))
	python.Dir = in
	out, err = python.CombinedOutput()
	if err != nil {
		t.Fatalf("python: %v\n%s", err, out)
	}
	var m struct{ Head string }
	head, err := os.ReadFile(filepath.Join(in, "manifest.json"))
	must(t, err)
	must(t, json.Unmarshal(head, &m))
	if got := strings.TrimSpace(string(out)); got != m.Head || len(got) != 64 {
		t.Errorf("python says %s, the manifest %s", got, m.Head)
	}
}

type entry struct {
	tar.Header
	data []byte
}

func entries(t *testing.T, file []byte) (all []entry) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(file))
	must(t, err)
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if err == io.EOF {
			return all
		}
		must(t, err)
		data, err := io.ReadAll(in)
		must(t, err)
		all = append(all, entry{*h, data})
	}
}

func packed(t *testing.T, all []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	out := tar.NewWriter(zip)
	for _, e := range all {
		e.Size = int64(len(e.data))
		if e.Typeflag != tar.TypeReg {
			e.Size = 0
		}
		must(t, out.WriteHeader(&e.Header))
		if e.Size > 0 {
			_, err := out.Write(e.data)
			must(t, err)
		}
	}
	must(t, out.Close())
	must(t, zip.Close())
	return b.Bytes()
}

// at returns the entry of that name.
func at(all []entry, name string) *entry {
	for i := range all {
		if strings.HasPrefix(all[i].Name, "run/"+name) {
			return &all[i]
		}
	}
	return nil
}

// edit replaces text in a file, and makes the manifest agree, as a forger would.
func edit(t *testing.T, all []entry, name, from, to string) {
	t.Helper()
	e := at(all, name)
	if !bytes.Contains(e.data, []byte(from)) {
		t.Fatalf("no %q in %s", from, e.data)
	}
	was := e.data
	e.data = bytes.Replace(e.data, []byte(from), []byte(to), 1)
	m := at(all, "manifest.json")
	m.data = bytes.Replace(m.data, []byte(ledger.Digest(was)), []byte(ledger.Digest(e.data)), 1)
	var facts map[string]any
	must(t, json.Unmarshal(m.data, &facts))
	if files := facts["files"].(map[string]any); files[name] != nil {
		files[name].(map[string]any)["size"] = len(e.data)
	}
	var err error
	m.data, err = json.Marshal(facts)
	must(t, err)
}

func TestAHostileFileIsNotImported(t *testing.T) {
	t.Parallel()
	file := exported(t)
	sets := func(name, from, to string) func(*testing.T, []entry) []entry {
		return func(t *testing.T, all []entry) []entry { edit(t, all, name, from, to); return all }
	}
	renames := func(name, to string) func(*testing.T, []entry) []entry {
		return func(_ *testing.T, all []entry) []entry { at(all, name).Name = to; return all }
	}
	for name, c := range map[string]struct {
		spoil func(*testing.T, []entry) []entry
		want  string
	}{
		"a path that leads out":         {renames("bodies/", "run/bodies/../../../../x"), "stands where the file"},
		"an absolute path":              {renames("README.txt", "/etc/passwd"), "stands where the file"},
		"another folder":                {renames("run.json", "walk/run.json"), "stands where the file"},
		"an event edited":               {sets("events.jsonl", `"n":1e400`, `"n":1e401`), "event 2 is not what was written"},
		"a kind edited":                 {sets("events.jsonl", `"kind":"step.succeeded"`, `"kind":"step.failed"`), "event 1 is not what was written"},
		"a time written in another way": {sets("events.jsonl", `790Z"`, `790+00:00"`), "is no time as the ledger writes it"},
		"the head edited":               {sets("manifest.json", `"head": "`, `"head": "0`), "the last is another one"},
		"the count edited":              {sets("manifest.json", `"events": 4`, `"events": 3`), "event 4 follows event 3 of 3"},
		"too many events claimed":       {sets("manifest.json", `"events": 4`, `"events": 5`), "there are 4 of 5"},
		"too many bodies claimed":       {sets("manifest.json", `"bodies": 2`, `"bodies": 2000000000`), "too many bodies"},
		"another run":                   {sets("run.json", `"id": "r1"`, `"id": "r2"`), "is not of the run r1"},
		"a run that goes on":            {sets("run.json", `"state": "completed"`, `"state": "running"`), "had not ended"},
		"a run without an end":          {sets("run.json", `"ended"`, `"ended_"`), "had not ended"},
		"a body listed twice":           {sets("bodies.jsonl", "\n", "\n"+string(entryLine(t, file))), "is there twice"},
		"a body of another size":        {sets("bodies.jsonl", `"size":1`, `"size":2`), "it should have 2 bodies"},
		"no manifest to speak of":       {func(_ *testing.T, all []entry) []entry { at(all, "manifest.json").data = []byte("[]"); return all }, "manifest.json is not as it should be"},
		"a later format":                {sets("manifest.json", `"format": 1`, `"format": 2`), "has format 2"},
		"a file changed alone": {func(_ *testing.T, all []entry) []entry {
			e := at(all, "run.json")
			e.data = bytes.Replace(e.data, []byte(`"map"`), []byte(`"mop"`), 1)
			return all
		}, "run.json is not the one that was written"},
		"an event left out": {func(t *testing.T, all []entry) []entry {
			lines := bytes.SplitAfter(at(all, "events.jsonl").data, []byte("\n"))
			edit(t, all, "events.jsonl", string(lines[1]), "")
			return all
		}, "event 3 follows event 1"},
		"two events swapped": {func(t *testing.T, all []entry) []entry {
			lines := bytes.SplitAfter(at(all, "events.jsonl").data, []byte("\n"))
			edit(t, all, "events.jsonl", string(lines[1])+string(lines[2]), string(lines[2])+string(lines[1]))
			return all
		}, "event 3 follows event 1"},
		"a body changed": {func(_ *testing.T, all []entry) []entry { at(all, "bodies/").data[0] ^= 1; return all }, "is not what was written"},
		"a body cut":     {func(_ *testing.T, all []entry) []entry { e := at(all, "bodies/"); e.data = e.data[1:]; return all }, "were written"},
		"a body left out": {func(_ *testing.T, all []entry) []entry {
			return slices.DeleteFunc(all, func(e entry) bool { return e.Name == at(all, "bodies/").Name })
		}, "stands where the file"},
		"a link": {func(_ *testing.T, all []entry) []entry {
			e := at(all, "bodies/")
			e.Typeflag, e.Linkname = tar.TypeSymlink, "/etc/passwd"
			return all
		}, "stands where the file"},
		"a README edited":   {func(_ *testing.T, all []entry) []entry { at(all, "README.txt").data[0] ^= 1; return all }, "not what SHA256SUMS says"},
		"a sum edited":      {func(_ *testing.T, all []entry) []entry { at(all, "SHA256SUMS").data[0] ^= 1; return all }, "not what SHA256SUMS says"},
		"one file more":     {func(_ *testing.T, all []entry) []entry { return append(all, all[0]) }, "more in it than there should be"},
		"one file less":     {func(_ *testing.T, all []entry) []entry { return all[:len(all)-1] }, "SHA256SUMS is missing"},
		"another order":     {func(_ *testing.T, all []entry) []entry { all[1], all[2] = all[2], all[1]; return all }, "stands where the file"},
		"nothing":           {func(*testing.T, []entry) []entry { return nil }, "README.txt is missing"},
		"a bomb":            {func(_ *testing.T, all []entry) []entry { at(all, "README.txt").data = make([]byte, 8<<20); return all }, "unpacks to more"},
		"a bomb at the end": {func(_ *testing.T, all []entry) []entry { at(all, "SHA256SUMS").data = make([]byte, 8<<20); return all }, "unpacks to more"},
		"an endless line":   {sets("events.jsonl", `"n":1e400`, `"n":`+strings.Repeat("1", 8<<20)), "unpacks to more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRefused(t, packed(t, c.spoil(t, entries(t, file))), c.want)
		})
	}
	t.Run("another export behind it", func(t *testing.T) {
		t.Parallel()
		wantRefused(t, append(bytes.Clone(file), file...), "more in it than there should be")
	})
	t.Run("not compressed", func(t *testing.T) { t.Parallel(); wantRefused(t, []byte("meeting notes"), "not compressed with gzip") })
	t.Run("too long", func(t *testing.T) { t.Parallel(); wantRefused(t, make([]byte, 5<<20), "more than 4194304 bytes") })
}

func entryLine(t *testing.T, file []byte) []byte {
	return bytes.SplitAfter(at(entries(t, file), "bodies.jsonl").data, []byte("\n"))[0]
}

// wantRefused wants nothing of the file to be kept.
func wantRefused(t *testing.T, file []byte, want string) {
	t.Helper()
	dir := t.TempDir()
	s, err := ledger.Open(t.Context(), ledger.Options{Dir: dir, ImportLimit: 4 << 20})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	_, err = s.Import(t.Context(), bytes.NewReader(file), ended)
	e := apierr.As(err)
	if e == nil || e.Code != apierr.InvalidArgument && e.Code != apierr.LedgerTooNew || len(e.Next) == 0 || !strings.Contains(err.Error(), want) {
		t.Errorf("want a refusal with %q, got %+v", want, e)
	}
	wantNothing(t, s, dir)
}

func wantNothing(t *testing.T, s ledger.Store, dir string) {
	t.Helper()
	rep, err := s.Verify(t.Context())
	if err != nil || rep.Runs+rep.Events+rep.Artifacts+rep.Pruned != 0 || len(rep.Problems) > 0 {
		t.Errorf("something of it was kept: %+v, %v", rep, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "artifacts", "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A file that was damaged anywhere is refused, or what was damaged says nothing, such as the padding.
func TestADamagedFileIsNotImported(t *testing.T) {
	t.Parallel()
	file := exported(t)
	source := open(t, t.TempDir())
	_, err := source.Import(t.Context(), bytes.NewReader(file), ended)
	must(t, err)
	whole, err := source.Head(t.Context(), "r1")
	must(t, err)
	dir := t.TempDir()
	s := open(t, dir)
	refused := 0
	for i := 0; i < len(file); i += 37 {
		for what, bad := range map[string][]byte{"cut at": file[:i], "a bit changed at": slices.Concat(file[:i], []byte{file[i] ^ 0x10}, file[i+1:])} {
			in, err := s.Import(t.Context(), bytes.NewReader(bad), ended)
			if err == nil {
				if head, err := s.Head(t.Context(), "r1"); err != nil || head != whole || in.Bodies != 2 {
					t.Fatalf("%s byte %d: %+v, %v", what, i, head, err)
				}
				must(t, s.Close())
				dir = t.TempDir()
				s = open(t, dir)
				continue
			}
			refused++
			if apierr.CodeOf(err) != apierr.InvalidArgument {
				t.Fatalf("%s byte %d: %v", what, i, err)
			}
		}
	}
	wantNothing(t, s, dir)
	if all := 2 * (len(file) + 36) / 37; refused < all-4 {
		t.Errorf("only %d of %d damaged files were refused", refused, all)
	}
}

func TestAnImportThatIsCancelled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	file := exported(t)
	broken := fmt.Errorf("the connection is gone")
	_, err := s.Import(t.Context(), io.MultiReader(bytes.NewReader(file[:len(file)/2]), failing{broken}), ended)
	if err == nil || !strings.Contains(err.Error(), broken.Error()) || apierr.CodeOf(err) == apierr.InvalidArgument {
		t.Errorf("%v", err)
	}
	wantNothing(t, s, dir)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

package source

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// secrets are planted in everything that a machine says. None may be found in a recording.
const (
	secretUUID   = "4f1c2b3a-1122-3344-5566-77889900aabb"
	secretSerial = "1321021077415"
	secretUnique = "9223372036854775809" // decimal, no 64-bit number is much larger
	secretHost   = "waldo-den"
	secretUser   = "gwendolyn"
	secretMAC    = "3c:ec:ef:12:34:56"
	secretIP     = "10.11.12.13"
	secretIP6    = "fe80::1ff:fe23:4567:890a"
	secretTool   = "/opt/gwendolyn-labs/train.py"
)

var secrets = []string{secretUUID, strings.ToUpper(secretUUID), secretSerial, secretUnique, secretHost, secretUser, secretMAC, secretIP, secretIP6, secretTool}

// told is a machine that tells all its secrets.
func told() Machine {
	return Machine{OS: "linux", Arch: "amd64",
		Files: fstest.MapFS{
			"etc/hostname":          {Data: []byte(secretHost + "\n")},
			"sys/card/0000:0c:00.0": {Data: []byte("7\n")},
			"sys/card/unique_id":    {Data: []byte("00123456789abcde\n")},
			"sys/node/properties":   {Data: []byte("gfx_target_version 110003\nunique_id " + secretUnique + "\nlocation_id 3072\n")},
			"sys/dmi/board_serial":  {Data: []byte("PF0ABC12\n")},
			"sys/empty/a":           {Data: nil},
			"proc/self/cmdline":     {Data: []byte(secretTool + "\x00--verbose")},
			"proc/self/cgroup":      {Data: []byte("0::/docker/" + strings.Repeat("0123456789abcdef", 4) + "\n")},
			"sys/fs/cgroup/docker/" + strings.Repeat("0123456789abcdef", 4) + "/memory.max": {Data: []byte("1024\n")},
			"sys/link": {Data: []byte("card"), Mode: fs.ModeSymlink},
		},
		Commands: runs{
			"smi": {Stdout: []byte("GPU-" + secretUUID + ", RTX 4080 at 0000:0c:00.0, 16376 MiB, driver 31.0.15.5161, on " + secretHost + " by " + secretIP + "\n" +
				"<serial>" + secretSerial + "</serial><process_name>" + secretTool + "</process_name>\n"),
				Stderr: []byte("/home/" + secretUser + "/.cache is not writable; " + secretMAC + " " + secretIP6 + "\n"), ExitCode: 3},
			"smi\x00-i\x00GPU-" + secretUUID: {Stdout: []byte("serial, uuid\n" + secretSerial + ", MIG-" + strings.ToUpper(secretUUID) + "\n")},
		},
		Calls: Calls{
			"host": func(context.Context, ...string) (any, error) {
				return map[string]any{"hostname": secretHost, "unique_id": uint64(9223372036854775809), "total": 137438953472}, nil
			},
			"broken": func(context.Context, ...string) (any, error) {
				return nil, errors.Join(errors.New("no rights for "+secretUser+" at C:\\Users\\"+secretUser+"\\x"), fs.ErrPermission)
			},
		},
	}
}

type runs map[string]Output

func (r runs) Run(_ context.Context, name string, args ...string) (Output, error) {
	out, known := r[question(name, args)]
	if !known {
		return out, &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	return out, nil
}

// record asks a machine through a recorder, and opens the recording.
func record(t *testing.T, m Machine, ask func(Machine)) (dir string, r *Recorder, replayed Machine) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "raw")
	r, err := Record(m, dir)
	if err != nil {
		t.Fatal(err)
	}
	ask(r.Machine())
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	replayed, err = Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, r, replayed
}

// askEverything asks the machine of told, and notes the answers.
func askEverything(t *testing.T, m Machine) string {
	var said strings.Builder
	note := func(what string, err error) {
		said.WriteString(what)
		if err != nil {
			said.WriteString(" error " + err.Error())
		}
		said.WriteByte('\n')
	}
	for _, name := range []string{"etc/hostname", "sys/card/0000:0c:00.0", "sys/card/unique_id", "sys/node/properties", "sys/dmi/board_serial", "sys/empty/a",
		"proc/self/cmdline", "no/such/file"} {
		note(ReadText(m.Files, name), nil)
	}
	group := strings.TrimPrefix(ReadText(m.Files, "proc/self/cgroup"), "0::/")
	note(ReadText(m.Files, "sys/fs/cgroup/"+group+"/memory.max"), nil)
	cards, err := fs.Glob(m.Files, "sys/card/*")
	note(strings.Join(cards, " "), err)
	target, err := fs.ReadLink(m.Files, "sys/link")
	note(target, err)
	out, err := m.Commands.Run(t.Context(), "smi")
	note(string(out.Stdout)+string(out.Stderr), err)
	uuid, _, _ := strings.Cut(string(out.Stdout), ",")
	out, err = m.Commands.Run(t.Context(), "smi", "-i", uuid)
	note(string(out.Stdout), err)
	_, err = m.Commands.Run(t.Context(), "none")
	note("", err)
	for _, name := range []string{"host", "broken", "none"} {
		raw, err := m.Calls.Call(t.Context(), name)
		note(string(raw), err)
	}
	return said.String()
}

func TestRecordingHoldsNoSecretAndAnswersAsTheMachineDid(t *testing.T) {
	var live string
	dir, r, replayed := record(t, told(), func(m Machine) { live = askEverything(t, m) })
	if direct := askEverything(t, told()); live != direct {
		t.Errorf("recording changes what is seen:\n%s\nwant\n%s", live, direct)
	}
	got, want := askEverything(t, replayed), r.Mask(live)
	want = strings.ReplaceAll(want, strings.ReplaceAll(secretTool, secretUser, "user-1")+"\x00--verbose", "process-1") // a file that is masked as a whole
	if squeezed(got) != squeezed(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, s := range append(secrets, "00123456789abcde", "PF0ABC12", "0123456789abcdef") {
			if strings.Contains(string(text), s) || strings.Contains(path, s) {
				t.Errorf("%s tells %q:\n%s", path, s, text)
			}
		}
		if strings.ContainsAny(strings.TrimPrefix(path, dir), `<>:"|?*`) {
			t.Errorf("%s is no name on every system", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestMasksHaveTheShapeOfWhatTheyMask(t *testing.T) {
	_, _, m := record(t, told(), func(m Machine) { askEverything(t, m) })
	if id := FieldOf(ReadText(m.Files, "sys/node/properties"), "unique_id"); ParseUint(id) == (hwprobe.Bytes{}) || len(id) != len(secretUnique) {
		t.Errorf("unique_id %q is no 64-bit number any more", id)
	}
	if FieldOf(ReadText(m.Files, "sys/node/properties"), "gfx_target_version") != "110003" || ReadUint(m.Files, "sys/card/0000:0c:00.0").Or(0) != 7 {
		t.Error("what is no secret was masked")
	}
	type answer struct {
		UniqueID uint64 `json:"unique_id"`
		Total    uint64 `json:"total"`
	}
	if a, err := Ask[answer](t.Context(), m.Calls, "host"); err != nil || a.UniqueID == 0 || a.Total != 137438953472 {
		t.Errorf("%+v, %v", a, err)
	}
	out, _ := m.Commands.Run(t.Context(), "smi")
	if s := string(out.Stdout); !strings.Contains(s, "GPU-00000000-0000-0000-0000-0000000000") || !strings.Contains(s, "0000:0c:00.0, 16376 MiB, driver 31.0.15.5161") {
		t.Errorf("got %s", s)
	}
}

// meter is a file whose text is another one at each reading.
type meter struct {
	fs.FS
	values []string
}

func (m *meter) ReadFile(string) ([]byte, error) {
	text := m.values[0]
	if len(m.values) > 1 {
		m.values = m.values[1:]
	}
	return []byte(text), nil
}

func TestQuestionAskedAgainHasItsOwnAnswer(t *testing.T) {
	readings := func(m Machine) (all string) {
		for range 5 {
			all += ReadText(m.Files, "energy") + " "
		}
		return all
	}
	root := &meter{FS: fstest.MapFS{}, values: []string{"5", "7", "5", "9"}}
	_, _, replayed := record(t, Machine{Files: root, Commands: runs{}, Calls: Calls{}}, func(m Machine) { readings(m) })
	if got := readings(replayed); got != "5 7 5 9 9 " {
		t.Errorf("got %s", got)
	}
}

func TestErrorsAreToldApartInARecording(t *testing.T) {
	for _, k := range kinds {
		m := Machine{Files: fstest.MapFS{}, Commands: fails{k.err}, Calls: Guard(Calls{"c": func(context.Context, ...string) (any, error) { return nil, k.err }})}
		ask := func(m Machine) (error, error) {
			_, run := m.Commands.Run(t.Context(), "smi")
			_, call := m.Calls.Call(t.Context(), "c")
			return run, call
		}
		_, _, replayed := record(t, m, func(m Machine) { _, _ = ask(m) })
		if run, call := ask(replayed); !errors.Is(run, k.err) || !errors.Is(call, k.err) {
			t.Errorf("%s: %v, %v", k.name, run, call)
		}
	}
}

type fails struct{ err error }

func (f fails) Run(context.Context, string, ...string) (Output, error) {
	return Output{Stdout: []byte("half a line")}, f.err
}

func TestRecordedFilesAreAFileSystem(t *testing.T) {
	root := fstest.MapFS{"a/b/c": {Data: []byte("text")}, "a/d": {Data: []byte("more")}, "e": {Data: nil}}
	live, _, replayed := "", 0, Machine{}
	_, _, replayed = record(t, Machine{Files: root, Commands: runs{}, Calls: Calls{}}, func(m Machine) {
		if err := fstest.TestFS(m.Files, "a/b/c", "a/d", "e"); err != nil {
			t.Error(err)
		}
		live = ReadText(m.Files, "a/b/c")
	})
	if err := fstest.TestFS(replayed.Files, "a/b/c", "a/d", "e"); err != nil {
		t.Error(err)
	}
	if ReadText(replayed.Files, "a/b/c") != live {
		t.Error("another text")
	}
}

func TestRecordingThatCannotBeOpened(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that is not there was opened")
	}
	for name, text := range map[string]string{"no index": "", "no JSON": "{", "later version": `{"version": 99}`,
		"a copy outside": `{"version":1,"files":{"a":[{"text":"../outside"}]}}`, "a folder in itself": `{"version":1,"folders":{"a":{"entries":{"":"folder"}}}}`, "a path out of it": `{"version":1,"files":{"../a":[]}}`,
		"a missing copy": `{"version":1,"files":{"a":[{"text":"files/a"}]}}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "outside"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, indexName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want := ErrNoRecording
		if name == "later version" {
			want = ErrLaterRecording
		}
		if _, err := Open(dir); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Record(Machine{}, full); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("it records over what is there: %v", err)
	}
}

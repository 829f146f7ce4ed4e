package ledger_test

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger/ledgertest"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// inOwnMounts runs the calling test again in a process that may mount, alone, and reports whether this is that process.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(childRole) == "mounts" {
		return true
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), childRole+"=mounts")
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := child.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Skipf("no user namespaces here, so a full and a read-only disk were not tried: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("in its own mounts: %v\n%s", err, out)
	}
	return false
}

func mount(t *testing.T, at string, flags uintptr, options string) {
	t.Helper()
	if err := syscall.Mount("ledgertest", at, "tmpfs", flags, options); err != nil {
		t.Fatalf("mount: %v", err)
	}
	if flags&syscall.MS_REMOUNT == 0 {
		t.Cleanup(func() { must(t, syscall.Unmount(at, 0)) }) // before TempDir removes it, after the ledger is closed
	}
}

func wantAdvice(t *testing.T, err error, dir, word string) {
	t.Helper()
	e := apierr.As(err)
	if e == nil || e.Code != apierr.Unavailable || !strings.Contains(e.Error(), dir) || !strings.Contains(strings.Join(e.Next, " "), word) {
		t.Fatalf("want advice with %q about %s: %+v", word, dir, e)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	if !inOwnMounts(t) {
		return
	}
	dir := t.TempDir()
	mount(t, dir, 0, "size=2m")
	filler := filepath.Join(dir, "filler")
	must(t, os.WriteFile(filler, make([]byte, 512<<10), 0o600))
	s := open(t, dir)

	huge := bytes.Repeat([]byte("x"), 4<<20)
	_, err := s.PutArtifact(t.Context(), "huge", bytes.NewReader(huge))
	wantAdvice(t, err, dir, "free some space")
	left, err := os.ReadDir(filepath.Join(dir, "artifacts", "incoming"))
	if err != nil || len(left) > 0 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
	acked := int64(0)
	for err = nil; err == nil; {
		c := ledgertest.Story("r1", "running", acked+1, acked+1)
		c.Bodies = []ledger.Body{{Data: bytes.Repeat([]byte{byte(acked)}, 40<<10)}}
		if err = s.Append(t.Context(), c); err == nil {
			acked++
		}
	}
	wantAdvice(t, err, dir, "free some space")
	rep, err := s.Verify(t.Context())
	if err != nil || rep.Events != acked || rep.Artifacts != acked || len(rep.Problems) > 0 || acked == 0 {
		t.Fatalf("%d acknowledged, then %+v, %v", acked, rep, err)
	}
	must(t, os.Remove(filler)) // as advised
	must(t, s.Append(t.Context(), ledgertest.Story("r1", "running", acked+1, acked+1)))
}

func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	if !inOwnMounts(t) {
		return
	}
	dir := t.TempDir()
	mount(t, dir, 0, "size=2m")
	s := open(t, dir)
	must(t, s.Append(t.Context(), ledgertest.Story("r1", "running", 1, 1)))
	must(t, s.Close())
	mount(t, dir, syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	for _, d := range []string{dir, filepath.Join(dir, "new")} {
		_, err := ledger.Open(t.Context(), ledger.Options{Dir: d})
		wantAdvice(t, err, d, "read and write")
	}
	mount(t, dir, syscall.MS_REMOUNT, "")
	must(t, open(t, dir).Append(t.Context(), ledgertest.Story("r1", "running", 2, 2)))
}

// A disk that fails a write may have lost an earlier one: nothing is acknowledged after that, until a reopening has read
// what is there.
func TestAFailingDiskStopsTheLedger(t *testing.T) {
	t.Parallel()
	if !inOwnMounts(t) { // in a process of its own, for the limit
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	dir := t.TempDir()
	s := open(t, dir)
	acked := int64(0)
	put := func() error { return s.Append(t.Context(), ledgertest.Story("r1", "running", acked+1, acked+1)) }
	for range 3 {
		must(t, put())
		acked++
	}
	var was syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64 << 10, Max: was.Max}))
	var err error
	for err = nil; err == nil; {
		if err = put(); err == nil {
			acked++
		}
	}
	wantAdvice(t, err, dir, "check the disk")
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was))
	wantAdvice(t, put(), dir, "restart")
	must(t, s.Close())
	s = open(t, dir)
	es, err := s.Events(t.Context(), "r1", 0, 0)
	if err != nil || int64(len(es)) < acked {
		t.Fatalf("%d acknowledged, %d kept, %v", acked, len(es), err)
	}
	acked = int64(len(es))
	must(t, put())
}

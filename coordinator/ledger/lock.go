package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// folderLock keeps a second coordinator out. The kernel drops it with the process, so a crash leaves nothing to clean up.
type folderLock struct {
	lock *flock.Flock
	pid  string // a file beside the lock: Windows lets nobody read a locked file
}

func lockFolder(dir string) (*folderLock, error) {
	l := &folderLock{lock: flock.New(filepath.Join(dir, "ledger.lock"), flock.SetPermissions(0o600)), pid: filepath.Join(dir, "ledger.pid")}
	ok, err := l.lock.TryLock()
	if err != nil {
		return nil, explainAt(dir, err, "lock the ledger")
	}
	if !ok {
		owner := "another coordinator"
		if pid, err := os.ReadFile(l.pid); err == nil {
			owner += " (pid " + strings.TrimSpace(string(pid)) + ")"
		}
		return nil, apierr.New(apierr.Conflict, "the ledger in %s is in use by %s", dir, owner).
			WithNext("use the coordinator that is running, or stop it first", "choose another folder for this one")
	}
	if err := os.WriteFile(l.pid, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(explainAt(dir, err, "note who uses the ledger"), l.release())
	}
	return l, nil
}

func (l *folderLock) release() error {
	err := os.Remove(l.pid)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.lock.Close())
}

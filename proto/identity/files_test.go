package identity

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func TestIdentityOnDisk(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	if _, err := Open(dir); apierr.CodeOf(err) != apierr.NotFound {
		t.Fatalf("an empty folder: %v", err)
	}
	key, err := KeyAt(filepath.Join(dir, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Install(dir, key, a.member(aWorker, nil).Leaf(), a.cert); apierr.CodeOf(err) != apierr.InvalidArgument {
		t.Errorf("the certificate of another key: %v", err)
	}
	if _, err := Install(dir, key, a.leaf(aWorker, key, nil), a.cert); err != nil {
		t.Fatal(err)
	}
	i, err := Open(dir)
	if err != nil || i.Peer().ID != "gpu-1" || !i.key.Equal(key) {
		t.Fatalf("%v, %v", i, err)
	}
	next := a.leaf(aWorker, key, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(9 * time.Hour) })
	if err := i.Renew(next.Raw); err != nil {
		t.Fatal(err)
	}
	if i, err = Open(dir); err != nil || !i.Leaf().Equal(next) {
		t.Errorf("the renewed certificate was not kept: %v", err)
	}
	found, err := os.ReadDir(dir)
	if err != nil || len(found) != 3 {
		t.Errorf("left in the folder: %v, %v", found, err)
	}
	for _, f := range found {
		if info, err := f.Info(); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

func TestKeyThatOthersMayReadIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing on Windows")
	}
	path := filepath.Join(t.TempDir(), KeyFile)
	if _, err := KeyAt(path); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := KeyAt(path); apierr.CodeOf(err) != apierr.Conflict || len(apierr.As(err).Next) == 0 {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

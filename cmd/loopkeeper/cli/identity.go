package cli

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/discovery"
)

// Files of the data folder beside the ledger.
const (
	nodeIDFile  = "node-id"          // who this machine is; a worker and a coordinator that share the folder share it
	addressFile = "coordinator.addr" // where the coordinator of this folder listens while it runs
	ledgerDir   = "ledger"
)

// dataDir makes the data folder, which only its owner may enter, and returns it.
func (a *app) dataDir() (string, error) {
	dir := a.config.DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", apierr.Wrap(err, apierr.Unavailable, "make the data folder").WithNext("--data-dir FOLDER with a folder that you may write")
	}
	return dir, nil
}

// nodeID reads who this machine is, or decides it once and for all.
func nodeID(dir, name string) (string, error) {
	path := filepath.Join(dir, nodeIDFile)
	text, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(text)); err == nil {
		if !discovery.ValidLabel(id) {
			return "", apierr.New(apierr.InvalidArgument, "%s holds %q, which is no node id", path, id).WithNext("delete the file: the next start makes a new id")
		}
		return id, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", apierr.Wrap(err, apierr.Unavailable, "read this machine's node id")
	}
	suffix := make([]byte, 2)
	rand.Read(suffix) // never fails
	id := hostLabel(name) + "-" + hex.EncodeToString(suffix)
	if err := writeFile(path, id+"\n"); err != nil {
		return "", apierr.Wrap(err, apierr.Unavailable, "keep this machine's node id")
	}
	return id, nil
}

// hostLabel makes a DNS label of a machine's name, short enough for a suffix.
func hostLabel(name string) string {
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0:
			b.WriteByte('-')
		}
	}
	label := strings.Trim(b.String(), "-")
	label = strings.Trim(label[:min(len(label), 40)], "-")
	if label == "" {
		return "node"
	}
	return label
}

// writeFile replaces a small file as a whole, readable by its owner only.
func writeFile(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// mayWrite says early that a file cannot be written, before hours of work end in that. What is in it stays, and what is no
// regular file, such as a pipe with a reader, is not opened for nothing.
func mayWrite(path string) error {
	info, err := os.Lstat(path)
	absent := errors.Is(err, fs.ErrNotExist)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		err = f.Close()
		if absent {
			err = errors.Join(err, os.Remove(path))
		}
	}
	if err != nil {
		return apierr.Wrap(err, apierr.InvalidArgument, "open the results file").WithNext("--out FILE in a folder that you may write")
	}
	return nil
}

// keepsInputs refuses a destination that would overwrite one of the files that the work is about.
func (d destination) keepsInputs(files []string) error {
	real := map[string]string{}
	out, err := os.Stat(d.out) // also "", which nobody asked for
	for _, f := range files {
		if path, e := canonical(f); e == nil {
			real[path] = f
		}
		if info, e := os.Stat(f); err == nil && e == nil && info.Mode().IsRegular() && os.SameFile(out, info) {
			return overwrites(f)
		}
	}
	for _, to := range d.resultFiles(files) {
		if path, err := canonical(to); err == nil && real[path] != "" {
			return overwrites(real[path])
		}
	}
	return nil
}

func overwrites(input string) error {
	return apierr.New(apierr.InvalidArgument, "the results would overwrite the input %s", input).WithNext("--out FILE or --out-dir FOLDER that is no input")
}

// canonical is the path of a file that exists, without links.
func canonical(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// resultFiles are the files that a results folder gets for inputs, as texts and as values.
func (d destination) resultFiles(files []string) []string {
	if d.dir == "" {
		return nil
	}
	var out []string
	for _, f := range files {
		for _, ext := range []string{".txt", ".json"} {
			out = append(out, filepath.Join(d.dir, resultName(f, ext)))
		}
	}
	return out
}

// unwritten is a result that could not be written where it should go. It says nothing about the run.
type unwritten struct{ error }

func (u unwritten) Unwrap() error { return u.error }

// unwrittenOf makes an error about results of a run that could not be written say how they are had; other errors stay.
func unwrittenOf(r *coordinatorv1.Run, id string, err error) error {
	var u unwritten
	if !errors.As(err, &u) {
		return err
	}
	how := "goes on, but not all of its results were written"
	if r.GetEnded() != nil {
		how = "has ended (" + r.GetState() + "), but not all of its results were written"
	}
	e := apierr.Wrap(u.error, apierr.InvalidArgument, "run %s %s", id, how)
	e.Next = nil // what the cause advises was for before the run
	again := fmt.Sprintf("loopkeeper result %s --out ELSEWHERE", id)
	if r != nil && !hasBatch(r) && !isMap(r) {
		again = fmt.Sprintf("loopkeeper result %s --print %s --out ELSEWHERE", id, mainOutput)
	}
	if r.GetEnded() == nil {
		return e.WithNext("loopkeeper watch "+id, again)
	}
	return e.WithNext(again)
}

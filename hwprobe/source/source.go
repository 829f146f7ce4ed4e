// Package source is the one seam between a probe and a machine: files, vendors' command-line tools, and questions to the
// operating system. Everything a probe knows comes through a Machine, so a probe can run on the real machine, on a recorded
// one, or on one made up by a test.
package source

import "io/fs"

// Machine is everything that a probe may look at. All its parts are safe for concurrent use.
type Machine struct {
	OS, Arch string // as Go spells them, of the machine that is looked at
	Files    fs.FS  // its root; names without a leading slash, such as "proc/meminfo"
	Commands Runner
	Calls    Caller
}

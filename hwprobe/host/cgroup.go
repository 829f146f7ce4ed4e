package host

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// Pool is the host's memory as far as the probe's own control group allows its use.
func Pool(root fs.FS, h hwprobe.Host) (hwprobe.Pool, []hwprobe.Warning) {
	p := hwprobe.Pool{ID: hwprobe.HostPool, Kind: hwprobe.PoolOfHost}
	p.SetTotal(h.TotalBytes, hwprobe.SourceOS)
	p.SetFree(h.AvailableBytes, hwprobe.SourceOS)
	limit, free, ok := groupMemory(root, h.TotalBytes.Or(0))
	if !ok {
		return p, nil
	}
	p.SetTotal(hwprobe.Known(limit), hwprobe.SourceCgroup) // a limit of 0 is no total; nothing is free of it
	if left := hwprobe.Least(free, h.AvailableBytes); left != h.AvailableBytes {
		p.SetFree(left, hwprobe.SourceCgroup)
	}
	return p, []hwprobe.Warning{{Code: hwprobe.WarnMemoryLimited,
		Message: fmt.Sprintf("a control group limits this process to %d bytes of main memory", limit),
		Next:    "if the model server runs outside this container or service, run the probe where the server runs, or raise the limit"}}
}

// files are the names in one version of control groups.
type files struct {
	limit, usage string
	// droppable is the page cache in memory.stat that the kernel gives back first: counting it as used refuses what fits.
	droppable string
	// inherited is the tightest limit of all parents in memory.stat, those included that a container does not see.
	inherited string
}

var (
	version1 = files{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "hierarchical_memory_limit"}
	version2 = files{"memory.max", "memory.current", "inactive_file", ""}
)

// groupMemory returns the tightest limit on the way from the process's control group to the root, and the least that any of
// these limits leaves free. ok is false where nothing sets a limit below the machine's total; version 1 spells "none" as a very
// large number. On a system with both versions memory is in one of them.
func groupMemory(root fs.FS, total uint64) (limit uint64, free hwprobe.Bytes, ok bool) {
	add := func(maximum uint64, left hwprobe.Bytes) {
		if !ok {
			limit, free, ok = maximum, left, true
		}
		limit, free = min(limit, maximum), hwprobe.Least(free, left)
	}
	for _, g := range memoryGroups(root) {
		for _, name := range upwards(g.path) {
			dir := path.Join(g.mount, name)
			stat := source.ReadText(root, path.Join(dir, "memory.stat"))
			maximum := source.ReadUint(root, path.Join(dir, g.limit)) // "max" is no number: no limit here
			used := hwprobe.Sub(source.ReadUint(root, path.Join(dir, g.usage)), hwprobe.Known(source.ParseUint(source.FieldOf(stat, g.droppable)).Or(0)))
			for _, m := range []hwprobe.Bytes{maximum, source.ParseUint(source.FieldOf(stat, g.inherited))} {
				if n, known := m.Value(); known && n < total {
					add(n, hwprobe.Sub(m, used))
				}
			}
		}
	}
	return limit, free, ok
}

// upwards is a rooted path and all its parents, up to "/".
func upwards(name string) []string {
	all := []string{name}
	for name != "/" {
		name = path.Dir(name)
		all = append(all, name)
	}
	return all
}

// group is the process's place in one hierarchy of control groups.
type group struct {
	files
	mount string // where the hierarchy is mounted
	path  string // below the mount, rooted there
}

// memoryGroups returns the process's place in each hierarchy that may limit its memory.
func memoryGroups(root fs.FS) []group {
	mounts := groupMounts(source.ReadText(root, "proc/self/mountinfo"))
	var groups []group
	for line := range strings.Lines(source.ReadText(root, "proc/self/cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // 0::/user.slice or 9:memory:/docker/1a2b
		if len(parts) != 3 {
			continue
		}
		g, places := group{files: version2}, mounts.unified
		switch {
		case parts[0] == "0" && parts[1] == "":
		case contains(parts[1], "memory"):
			g.files, places = version1, mounts.memory
		default:
			continue
		}
		g.mount, g.path = placeOf(places, parts[2])
		groups = append(groups, g)
	}
	return groups
}

// mount is where a hierarchy, or the part of it that a container is given, can be read.
type mount struct {
	at   string // without a leading slash
	root string // path in the hierarchy of what is mounted
}

type mounts struct{ unified, memory []mount }

// groupMounts finds the hierarchies in /proc/self/mountinfo; where it does not tell, they are in their usual places. One may be
// there several times, as where a part of it is mounted for a container.
func groupMounts(mountinfo string) mounts {
	var found mounts
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(line, " - ") // 36 35 0:31 ROOT POINT OPTIONS ... - TYPE SOURCE OPTIONS
		place, kind := strings.Fields(before), strings.Fields(after)
		if len(place) < 5 || len(kind) < 3 {
			continue
		}
		m := mount{at: path.Join(".", path.Clean("/"+place[4])), root: path.Clean(place[3])}
		switch {
		case kind[0] == "cgroup2":
			found.unified = append(found.unified, m)
		case kind[0] == "cgroup" && contains(kind[2], "memory"):
			found.memory = append(found.memory, m)
		}
	}
	if found.unified == nil {
		found.unified = []mount{{"sys/fs/cgroup", "/"}}
	}
	if found.memory == nil {
		found.memory = []mount{{"sys/fs/cgroup/memory", "/"}}
	}
	return found
}

// placeOf is where a group that /proc/self/cgroup names can be read: in the mount that shows most of the way to it. One that
// no mount shows is out of sight, and only its hierarchy's first mount says something: a container's own is all that it is given.
func placeOf(mounts []mount, name string) (at, below string) {
	best, at, below := "", mounts[0].at, "/"
	for _, m := range mounts {
		if path, inside := m.below(name); inside && (best == "" || len(m.root) < len(best)) {
			best, at, below = m.root, m.at, path
		}
	}
	return at, below
}

// below is the path under the mount of a group; in a container without a namespace of its own the name is the host's, and the
// mount begins at the container's own group.
func (m mount) below(name string) (below string, inside bool) {
	name = path.Clean("/" + name)
	if m.root == "/" {
		return name, true
	}
	rest, inside := strings.CutPrefix(name, m.root)
	if !inside || rest != "" && rest[0] != '/' {
		return "/", false
	}
	return path.Clean("/" + rest), true
}

func contains(list, item string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if part == item {
			return true
		}
	}
	return false
}

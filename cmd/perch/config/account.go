package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"perch/secret"
)

// Paths of an installed package.
const (
	systemConfig = "/etc/perch/perch.yaml"
	SystemData   = "/var/lib/perch"
	SystemRun    = "/run/perch"
)

// Account is a user of this machine, with what decides about its rights to files.
type Account struct {
	Name string
	uid  uint32
	gids []uint32
}

// serviceUser is the user of the package's unit.
const serviceUser = "perch"

// ServiceAccount returns the user of the service on this machine, or nil if there is no service or if
// this process runs as that user.
func ServiceAccount() *Account {
	there := func(path string) bool { _, err := os.Lstat(filepath.Join("/", path)); return err == nil }
	if !there(OwnUnit) && !there("usr/"+PackageUnit) && !there(PackageUnit) {
		return nil
	}
	u, err := user.Lookup(serviceUser)
	if err != nil {
		return nil
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil || int(uid) == os.Geteuid() {
		return nil
	}
	a := &Account{Name: u.Username, uid: uint32(uid)}
	groups, err := u.GroupIds()
	if err != nil {
		groups = []string{u.Gid}
	}
	for _, g := range groups {
		if gid, err := strconv.ParseUint(g, 10, 32); err == nil {
			a.gids = append(a.gids, uint32(gid))
		}
	}
	return a
}

// Reader returns the user who has to read what a configuration names: the service's user for the
// system's configuration, else nil, the user of this process.
func Reader(path string) *Account {
	if path != systemConfig {
		return nil
	}
	return ServiceAccount()
}

// ourselves returns the account of this process.
func ourselves() Account {
	a := Account{Name: strconv.Itoa(os.Geteuid()), uid: uint32(os.Geteuid()), gids: []uint32{uint32(os.Getegid())}}
	if u, err := user.LookupId(a.Name); err == nil {
		a.Name = u.Username
	}
	groups, _ := os.Getgroups() // without them some advice is needless, but not wrong
	for _, g := range groups {
		a.gids = append(a.gids, uint32(g))
	}
	return a
}

// hiddenDirectories lists folders that the package's unit hides from the service, or replaces.
var hiddenDirectories = []string{"/home", "/root", "/run/user", "/tmp", "/var/tmp"}

// reads returns why this user cannot read a file, with the command that corrects it, or nil. It
// judges by mode, owner and group of the file and of every directory above it, as far as this process
// may look at them.
func (a Account) reads(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	for _, dir := range hiddenDirectories {
		if a.Name == serviceUser && strings.HasPrefix(path, dir+"/") {
			return fmt.Errorf("the service, whose user is %s, sees nothing of %s; sudo install -m 640 -g %s %s /etc/perch/, and name it there",
				a.Name, dir, a.Name, ShellWord(path))
		}
	}
	way := parents(path)
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		way, path = append(way, parents(real)...), real
	}
	for _, dir := range way {
		if f, err := os.Stat(dir); err == nil && !a.May(f, dir, 1) {
			return fmt.Errorf("the user %s cannot read %s, for it may not enter %s (%s); sudo chgrp %s %s && sudo chmod g+x %s",
				a.Name, path, dir, ownerOf(f), a.Name, ShellWord(dir), ShellWord(dir))
		}
	}
	if f, err := os.Stat(path); err == nil && !a.May(f, path, 4) {
		return fmt.Errorf("the user %s cannot read %s (%s); sudo chgrp %s %s && sudo chmod g+r %s",
			a.Name, path, ownerOf(f), a.Name, ShellWord(path), ShellWord(path))
	}
	return nil
}

// parents returns the directories above a path, the outermost first.
func parents(path string) (dirs []string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
		if dir == filepath.Dir(dir) {
			slices.Reverse(dirs)
			return dirs
		}
	}
}

// May reports whether a file's mode lets this user do what bit says: 4 read, 2 write, 1 enter. It
// does not judge a file with an access control list, which may allow more than the mode.
func (a Account) May(f fs.FileInfo, path string, bit fs.FileMode) bool {
	own, ok := f.Sys().(*syscall.Stat_t)
	if !ok || a.uid == 0 {
		return true
	}
	switch {
	case own.Uid == a.uid:
		bit <<= 6
	case slices.Contains(a.gids, own.Gid):
		bit <<= 3
	}
	if f.Mode().Perm()&bit != 0 {
		return true
	}
	n, err := syscall.Getxattr(path, "system.posix_acl_access", nil)
	return err == nil && n > 0
}

// ownerOf returns a file's owner, group and mode in words.
func ownerOf(f fs.FileInfo) string {
	owner, group := "?", "?"
	if s, ok := f.Sys().(*syscall.Stat_t); ok {
		owner, group = strconv.Itoa(int(s.Uid)), strconv.Itoa(int(s.Gid))
		if u, err := user.LookupId(owner); err == nil {
			owner = u.Username
		}
		if g, err := user.LookupGroupId(group); err == nil {
			group = g.Name
		}
	}
	return fmt.Sprintf("of %s:%s, mode %04o", owner, group, f.Mode().Perm())
}

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9/._@%+=:,-]+$`) })

// ShellWord returns a path as it is typed in a shell.
func ShellWord(path string) string {
	if plainWord().MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// explainDenied returns err, or for a file that may not be read which it is, by whom, and the command
// that corrects it.
func explainDenied(err error, by Account) error {
	var of *fs.PathError
	if !errors.Is(err, fs.ErrPermission) || !errors.As(err, &of) {
		return err
	}
	if strings.HasPrefix(of.Path, filepath.Dir(systemConfig)+"/") && ServiceAccount() != nil {
		return explainedError{fmt.Errorf(
			"%s may not be read by this user; join the group perch (sudo adduser %s perch, then log in again), or use sudo", of.Path, by.Name), err}
	}
	if why := by.reads(of.Path); why != nil {
		return explainedError{why, err}
	}
	return err
}

// explainedError is an error with an explanation, which is its text.
type explainedError struct{ why, cause error }

func (r explainedError) Error() string { return r.why.Error() }

func (r explainedError) Unwrap() []error { return []error{r.why, r.cause} }

// isCredential reports whether a file is one of the secrets that the service's manager reads as root
// and hands to the service.
func isCredential(path string) bool {
	return strings.HasPrefix(filepath.Clean(path), secret.Directory+"/")
}

// Paths of the units of the machine's owner, which comes first, and of the package.
const (
	OwnUnit     = "etc/systemd/system/perch.service"
	PackageUnit = "lib/systemd/system/perch.service" // of /usr or /
)

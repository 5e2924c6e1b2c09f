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

// Paths that the Debian package uses.
const (
	systemConfig = "/etc/perch/perch.yaml"
	SystemData   = "/var/lib/perch"
	SystemRun    = "/run/perch"
)

// Account is a user of this machine, with the IDs that decide which files the user may access.
type Account struct {
	Name string
	uid  uint32
	gids []uint32
}

// serviceUser is the user that Perch runs as under the systemd unit of the Debian package.
const serviceUser = "perch"

// ServiceAccount returns the user perch if a unit of Perch's service is installed. It returns nil
// if no unit or no such user exists, or if this process runs as that user.
func ServiceAccount() *Account {
	exists := func(path string) bool { _, err := os.Lstat(filepath.Join("/", path)); return err == nil }
	if !exists(OwnUnit) && !exists("usr/"+PackageUnit) && !exists(PackageUnit) {
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

// ReadingAccount returns the user who must be able to read the files that the configuration at path names:
// ServiceAccount if path is /etc/perch/perch.yaml. For other paths it returns nil, which means the user of
// this process.
func ReadingAccount(path string) *Account {
	if path != systemConfig {
		return nil
	}
	return ServiceAccount()
}

// currentAccount returns the account of this process.
func currentAccount() Account {
	a := Account{Name: strconv.Itoa(os.Geteuid()), uid: uint32(os.Geteuid()), gids: []uint32{uint32(os.Getegid())}}
	if u, err := user.LookupId(a.Name); err == nil {
		a.Name = u.Username
	}
	groups, _ := os.Getgroups() // without the groups, checkReadable may give advice that is not needed
	for _, g := range groups {
		a.gids = append(a.gids, uint32(g))
	}
	return a
}

// hiddenDirectories lists the folders that the package's systemd unit hides from the service, or
// replaces by empty ones.
var hiddenDirectories = []string{"/home", "/root", "/run/user", "/tmp", "/var/tmp"}

// checkReadable returns an error if the account cannot read a file. The error states the reason, and the
// command that corrects it. checkReadable examines mode, owner and group of the file and of every
// directory above it. A file below hiddenDirectories is one that the service's user cannot read. checkReadable
// ignores a file or directory that this process cannot examine.
func (a Account) checkReadable(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	for _, dir := range hiddenDirectories {
		if a.Name == serviceUser && strings.HasPrefix(path, dir+"/") {
			return fmt.Errorf("the service (user %s) cannot see files in %s; sudo install -m 640 -g %s %s /etc/perch/, and configure that path",
				a.Name, dir, a.Name, ShellWord(path))
		}
	}
	dirs := parents(path)
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		dirs, path = append(dirs, parents(real)...), real
	}
	for _, dir := range dirs {
		if f, err := os.Stat(dir); err == nil && !a.May(f, dir, 1) {
			return fmt.Errorf("the user %s cannot read %s because it may not enter %s (%s); sudo chgrp %s %s && sudo chmod g+x %s",
				a.Name, path, dir, ownerOf(f), a.Name, ShellWord(dir), ShellWord(dir))
		}
	}
	if f, err := os.Stat(path); err == nil && !a.May(f, path, 4) {
		return fmt.Errorf("the user %s cannot read %s (%s); sudo chgrp %s %s && sudo chmod g+r %s",
			a.Name, path, ownerOf(f), a.Name, ShellWord(path), ShellWord(path))
	}
	return nil
}

// parents returns the directories above a path, beginning with the root.
func parents(path string) (dirs []string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
		if dir == filepath.Dir(dir) {
			slices.Reverse(dirs)
			return dirs
		}
	}
}

// May reports whether the account has a permission for a file: bit is 4 to read, 2 to write and 1 to
// enter a directory. It returns true for root, and for a file with an access control list, which may
// allow more than the mode does.
func (a Account) May(f fs.FileInfo, path string, bit fs.FileMode) bool {
	stat, ok := f.Sys().(*syscall.Stat_t)
	if !ok || a.uid == 0 {
		return true
	}
	switch {
	case stat.Uid == a.uid:
		bit <<= 6
	case slices.Contains(a.gids, stat.Gid):
		bit <<= 3
	}
	if f.Mode().Perm()&bit != 0 {
		return true
	}
	n, err := syscall.Getxattr(path, "system.posix_acl_access", nil)
	return err == nil && n > 0
}

// ownerOf returns a file's owner, group and mode for an error message.
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
	return fmt.Sprintf("owner %s:%s, mode %04o", owner, group, f.Mode().Perm())
}

// plainWord matches paths that need no quotes in a shell.
var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9/._@%+=:,-]+$`) })

// ShellWord returns a path as it must be typed in a shell: in quotes if necessary.
func ShellWord(path string) string {
	if plainWord().MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// explainDenied explains an error that wraps fs.ErrPermission: it returns an error that wraps err, and
// whose text is the reason why user may not read the file and the command that corrects it. It returns
// other errors, and errors for which it finds no reason, unchanged.
func explainDenied(err error, user Account) error {
	var denied *fs.PathError
	if !errors.Is(err, fs.ErrPermission) || !errors.As(err, &denied) {
		return err
	}
	if service := ServiceAccount(); service != nil && strings.HasPrefix(denied.Path, filepath.Dir(systemConfig)+"/") {
		return explainedError{user.deniedInstalled(denied.Path, *service), err}
	}
	if reason := user.checkReadable(denied.Path); reason != nil {
		return explainedError{reason, err}
	}
	return err
}

// deniedInstalled returns the error for an installed file that the account may not read. It advises to join
// the group of the service only if that group may read the file: only root may read /etc/perch/secrets.
func (a Account) deniedInstalled(path string, service Account) error {
	a.gids = slices.Concat(a.gids, service.gids)
	if a.checkReadable(path) != nil {
		return fmt.Errorf("%s may not be read by this user; use sudo", path)
	}
	return fmt.Errorf("%s may not be read by this user; join the group perch (sudo adduser %s perch, then log in again), or use sudo", path, a.Name)
}

// explainedError is an error whose text is the explanation of its cause.
type explainedError struct{ explanation, cause error }

// Error returns the explanation.
func (r explainedError) Error() string { return r.explanation.Error() }

// Unwrap returns the explanation and the cause.
func (r explainedError) Unwrap() []error { return []error{r.explanation, r.cause} }

// isCredential reports whether a file is a systemd credential: a secret that systemd reads as root
// and passes to the service.
func isCredential(path string) bool {
	return strings.HasPrefix(filepath.Clean(path), secret.Directory+"/")
}

// Paths of systemd units, without the leading slash. The unit of the machine's owner overrides the
// unit of the Debian package.
const (
	OwnUnit     = "etc/systemd/system/perch.service"
	PackageUnit = "lib/systemd/system/perch.service" // below / or /usr
)

package event

// FirmwareOffered is an image offered to a robot in a check-in.
type FirmwareOffered struct {
	Version string `json:"version"`
}

// FirmwareProgress is how much of an image a robot has been sent.
type FirmwareProgress struct {
	Version string `json:"version"`
	Bytes   int64  `json:"bytes"`
	Size    int64  `json:"size"`
}

// FirmwareInstalled is a robot back with the image it was offered.
type FirmwareInstalled struct {
	Version string `json:"version"`
}

// FirmwareRolledBack is a robot that was sent the whole image and is back with
// the one before.
type FirmwareRolledBack struct {
	Version string `json:"version"` // that it did not keep
}

// FirmwareFailed is a robot that will not be offered the image again.
type FirmwareFailed struct {
	Version string `json:"version"`
	Why     string `json:"why"`
}

func (FirmwareOffered) kind() string    { return "firmware_offered" }
func (FirmwareProgress) kind() string   { return "firmware_progress" }
func (FirmwareInstalled) kind() string  { return "firmware_installed" }
func (FirmwareRolledBack) kind() string { return "firmware_rolled_back" }
func (FirmwareFailed) kind() string     { return "firmware_failed" }

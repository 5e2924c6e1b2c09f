package event

// FirmwareOffered is published when a check-in is answered with a firmware image.
type FirmwareOffered struct {
	Version string `json:"version"` // of the image
}

// FirmwareProgress is published while a robot downloads an image.
type FirmwareProgress struct {
	Version string `json:"version"` // of the image
	Bytes   int64  `json:"bytes"`   // bytes sent so far
	Size    int64  `json:"size"`    // bytes of the whole image
}

// FirmwareInstalled is published when a robot checks in with the image it was
// offered.
type FirmwareInstalled struct {
	Version string `json:"version"` // of the image
}

// FirmwareRolledBack is published when a robot has downloaded the whole image but
// checks in with the earlier one.
type FirmwareRolledBack struct {
	Version string `json:"version"` // of the image that the robot did not keep
}

// FirmwareFailed is published when a robot will not be offered the image again.
type FirmwareFailed struct {
	Version string `json:"version"` // of the image
	Why     string `json:"why"`     // the cause; text for people
}

func (FirmwareOffered) kind() string    { return "firmware_offered" }
func (FirmwareProgress) kind() string   { return "firmware_progress" }
func (FirmwareInstalled) kind() string  { return "firmware_installed" }
func (FirmwareRolledBack) kind() string { return "firmware_rolled_back" }
func (FirmwareFailed) kind() string     { return "firmware_failed" }

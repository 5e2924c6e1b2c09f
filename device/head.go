package device

// Limits of a Stack-chan's head, in degrees.
const (
	// MaxHeadYaw is the firmware's maximum to either side.
	MaxHeadYaw = 128
	// AssumedHeadYaw is the maximum to either side of a head whose tool lists no range.
	AssumedHeadYaw = 90
	// MinHeadPitch and MaxHeadPitch are the range that the makers recommend: servos break when
	// they are driven against their mechanical stops.
	MinHeadPitch = 5
	MaxHeadPitch = 85
	// FirmwareHeadPitch is the firmware's maximum. Tool.Fit clamps to MaxHeadPitch.
	FirmwareHeadPitch = 90
	// KeepHeadAxis is the value of an axis that must not move. The firmware lists it as the minimum
	// of the axis.
	KeepHeadAxis = -9999
)

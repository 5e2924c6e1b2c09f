"""Makes what Perch tells in a project of Unreal Engine 5.6 or later: an actor with the properties, and a
Remote Control preset that exposes them.

Switch on the plugins "Remote Control API" and "Python Editor Script Plugin", open the level that is to show
Stack-chan, and run this file with "Tools, Execute Python Script". It makes BP_Stackchan and Stackchan in the
folder /Game/Stackchan, and places the actor in the level. Then give BP_Stackchan the functions Gesture (with
the text parameter Name) and Notify (with Text) by hand, compile it, and run the file once more: it exposes
the functions, and leaves the rest as it is.
"""

import unreal

FOLDER = "/Game/Stackchan"
PROPERTIES = {
    "State": "string",
    "Tool": "string",
    "Face": "string",
    "Feeling": "string",
    "Said": "string",
    "Question": "string",
    "Mouth": "real",
}
FUNCTIONS = ["Gesture", "Notify"]


def asset(name, kind, factory):
    """Returns the asset with a name, which is made if it does not exist."""
    path = FOLDER + "/" + name
    if unreal.EditorAssetLibrary.does_asset_exist(path):
        return unreal.EditorAssetLibrary.load_asset(path)
    return unreal.AssetToolsHelpers.get_asset_tools().create_asset(name, FOLDER, kind, factory)


def main():
    factory = unreal.BlueprintFactory()
    factory.set_editor_property("parent_class", unreal.Actor)
    blueprint = asset("BP_Stackchan", unreal.Blueprint, factory)
    library = unreal.BlueprintEditorLibrary
    for name, kind in PROPERTIES.items():
        library.add_member_variable(blueprint, name, library.get_basic_type_by_name(kind))  # does nothing if it exists
        library.set_blueprint_variable_instance_editable(blueprint, name, True)
    library.compile_blueprint(blueprint)

    actors = unreal.get_editor_subsystem(unreal.EditorActorSubsystem)
    actor_class = unreal.EditorAssetLibrary.load_blueprint_class(FOLDER + "/BP_Stackchan")
    placed = [a for a in actors.get_all_level_actors() if a.get_class() == actor_class]
    actor = placed[0] if placed else actors.spawn_actor_from_class(actor_class, unreal.Vector())

    is_new = not unreal.EditorAssetLibrary.does_asset_exist(FOLDER + "/Stackchan")
    preset = asset("Stackchan", unreal.RemoteControlPreset, unreal.RemoteControlPresetFactory())
    expose = unreal.RemoteControlFunctionLibrary
    for name in PROPERTIES if is_new else []:
        if not expose.expose_property(preset, actor, name, unreal.RemoteControlOptionalExposeArgs(display_name=name)):
            unreal.log_error("Stack-chan: the property " + name + " cannot be exposed")
    for name in FUNCTIONS:
        if not expose.expose_function(preset, actor, name, unreal.RemoteControlOptionalExposeArgs(display_name=name)):
            unreal.log_warning("Stack-chan: BP_Stackchan has no function " + name + " yet")
    unreal.EditorAssetLibrary.save_directory(FOLDER)


main()

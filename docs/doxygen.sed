# What Doxygen 1.9.4 cannot parse: an inline namespace in a nested name, and a specialisation outside of
# the namespace std, which is then excluded by its name.
s/^namespace omnibal::inline v[0-9]+/namespace omnibal/
s/^struct std::/struct std_/

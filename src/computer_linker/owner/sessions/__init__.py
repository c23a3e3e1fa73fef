"""The clients that use this computer, or may use it over OAuth."""
